"""DP-SGD: clip every record's gradient, add Gaussian noise to the sum, take a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.optimizers import OptimizerChoice
from discreet.recipes.first_order import FirstOrder


@dataclass(frozen=True, kw_only=True)
class DPSGD(FirstOrder):
    """Differentially private SGD with momentum and weight decay.

    Args:
        momentum: mu, of heavy-ball momentum.
        nesterov: whether the momentum is Nesterov's.
        weight_decay: lambda, L2 regularisation; added to the released gradient, so it costs no privacy.
    """

    name: ClassVar[str] = "dp-sgd"
    summary: ClassVar[str] = "SGD with momentum on clipped, noisy gradients"
    paper: ClassVar[str] = "Abadi et al., Deep Learning with Differential Privacy, CCS 2016"

    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0

    def optimizer(self) -> OptimizerChoice:
        """SGD as torch has it."""
        return OptimizerChoice(
            name="SGD",
            settings={
                "momentum": self.momentum,
                "nesterov": self.nesterov,
                "weight_decay": self.weight_decay,
            },
        )

"""DP-Adam: Adam on clipped, noisy gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.optimizers import OptimizerChoice
from discreet.recipes.first_order import FirstOrder


@dataclass(frozen=True, kw_only=True)
class DPAdam(FirstOrder):
    """Differentially private Adam.

    Args:
        betas: decay of the first and second moment of the released gradient.
        epsilon_root: epsilon_0, added to the root of the second moment (torch calls it eps).
    """

    name: ClassVar[str] = "dp-adam"
    summary: ClassVar[str] = "Adam on clipped, noisy gradients"
    paper: ClassVar[str] = "Kingma and Ba, Adam, ICLR 2015, on the releases of DP-SGD"

    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon_root: float = 1e-8

    def optimizer(self) -> OptimizerChoice:
        """Adam as torch has it."""
        return OptimizerChoice(name="Adam", settings={"betas": self.betas, "eps": self.epsilon_root})

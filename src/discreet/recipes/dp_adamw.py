"""DP-AdamW: Adam on clipped, noisy gradients, with weight decay of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.optimizers import OptimizerChoice
from discreet.recipes.dp_adam import DPAdam


@dataclass(frozen=True, kw_only=True)
class DPAdamW(DPAdam):
    """Differentially private Adam with decoupled weight decay.

    Args:
        weight_decay: lambda; the decay looks at the weights only, so it costs no privacy. It is neither in the
            record's loss, where it would change what is clipped, nor in the moments.
    """

    name: ClassVar[str] = "dp-adamw"
    summary: ClassVar[str] = "AdamW on clipped, noisy gradients: Adam with decoupled weight decay"
    paper: ClassVar[str] = (
        "Loshchilov and Hutter, Decoupled Weight Decay Regularization, ICLR 2019, on DP-SGD"
    )

    weight_decay: float = 0.01

    def optimizer(self) -> OptimizerChoice:
        """AdamW as torch has it."""
        return OptimizerChoice(
            name="AdamW",
            settings={"betas": self.betas, "eps": self.epsilon_root, "weight_decay": self.weight_decay},
        )

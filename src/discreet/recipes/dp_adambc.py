"""DP-AdamBC: Adam whose second moment is freed of the noise's own variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from discreet.errors import UserError
from discreet.optimizers import OptimizerChoice
from discreet.recipes.first_order import FirstOrder


@dataclass(frozen=True, kw_only=True)
class DPAdamBC(FirstOrder):
    """Differentially private Adam with bias correction.

    Args:
        betas: decay of the first and second moment of the released gradient.
        floor: gamma', the smallest second moment after Phi = (sigma C / B)^2 has been taken out.
    """

    name: ClassVar[str] = "dp-adambc"
    summary: ClassVar[str] = "Adam with the noise's variance taken out of the second moment"
    paper: ClassVar[str] = "Tang, Shpilevskiy and Lecuyer, DP-AdamBC, AAAI 2024"

    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    floor: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (math.isfinite(self.floor) and self.floor > 0):
            raise UserError(f"floor is {self.floor}; the corrected second moment needs a positive floor")

    def optimizer(self) -> OptimizerChoice:
        """The project's AdamBC."""
        return OptimizerChoice(name="AdamBC", settings={"betas": self.betas, "floor": self.floor})

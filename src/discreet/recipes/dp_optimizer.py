"""DP-Optimizer: any optimizer of torch on clipped, noisy gradients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from discreet.optimizers import OptimizerChoice
from discreet.recipes.first_order import FirstOrder


@dataclass(frozen=True, kw_only=True)
class DPOptimizer(FirstOrder):
    """Clipped, noisy gradients handed to the `torch.optim` class of one's choice.

    Args:
        torch_optimizer: the class's name, such as "RMSprop" or "NAdam".
        torch_settings: its keyword arguments, the learning rate excepted.
    """

    name: ClassVar[str] = "dp-optimizer"
    summary: ClassVar[str] = "any torch.optim class on clipped, noisy gradients"
    paper: ClassVar[str] = "Abadi et al., CCS 2016, with the optimizer as post-processing"

    torch_optimizer: str = "RMSprop"
    torch_settings: dict[str, Any] = field(default_factory=dict)
    learning_rate: float = 1e-3

    def optimizer(self) -> OptimizerChoice:
        """The class named."""
        return OptimizerChoice(name=self.torch_optimizer, settings=self.torch_settings)

"""FO-DP-SGD: the query is a blend of the fresh sum and of past releases, noised afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.memory import FilteringMemory, kernel
from discreet.recipes.remembering import Filtering


@dataclass(frozen=True, kw_only=True)
class FODPSGD(Filtering):
    """Fractional-order differentially private SGD."""

    name: ClassVar[str] = "fo-dp-sgd"
    summary: ClassVar[str] = (
        "the fresh sum, weighed down, and a weighted mean of past releases, noised together"
    )
    paper: ClassVar[str] = "Partohaghighi and Marcia, Fractional-Order Differential Privacy, arXiv 2605.09890"

    def memory(self) -> FilteringMemory:
        """A filter before the noise."""
        return FilteringMemory(
            fresh_weight=self.fresh_weight,
            window=self.window,
            kernel=kernel(self.kernel, order=self.order, tempering=self.tempering),
        )

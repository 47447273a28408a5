"""A memory: how a noisy release is blended with those before it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.errors import UserError

if TYPE_CHECKING:
    from discreet.gradients.layout import FlatLayout
    from discreet.memory.recollection import Recollection
    from discreet.noise.gaussian import Released


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What every memory has.

    Guarantee: a blend is a function of noisy releases and public numbers, hence post-processing (Theorem memory, in
    `discreet.accounting.selective.memory`). Of the records it changes one thing only: the clipped sum is multiplied by
    `sum_weight` before the noise is added, which divides the sensitivity. The plan computes its events from that. The
    types keep to it: `blend_` takes what `add_gaussian_` gives, and no sum.

    s~ = beta s + b(history) + noise is computed as (beta s + noise) + b(history). It is the same sum, and nothing
    that has not been noised is ever in reach of b.

    Attributes:
        fresh_weight: beta, in (0, 1]: what is fresh weighs beta, the memory 1 - beta.
        window: K: the last K - 1 releases are remembered.
    """

    kind: ClassVar[str]

    fresh_weight: float
    window: int

    def __post_init__(self) -> None:
        if not 0.0 < self.fresh_weight <= 1.0:
            raise UserError(
                f"fresh_weight is {self.fresh_weight}; beta lies in (0, 1], and 1 leaves the memory out"
            )
        if self.window < 1:
            raise UserError(
                f"window is {self.window}; K is a whole number of at least 1, and 1 remembers nothing"
            )

    @property
    def lags(self) -> int:
        """How many releases are remembered; none where they would weigh nothing."""
        return 0 if self.fresh_weight == 1.0 else self.window - 1

    @property
    def sum_weight(self) -> float:
        """What the clipped sum is multiplied by before the noise is added."""
        return self.fresh_weight

    def start(self, layout: FlatLayout) -> Recollection:
        """The empty memory of a model of that layout."""
        raise NotImplementedError

    def blend_(self, release: Released, recollection: Recollection, *, weights: Released) -> dict[str, float]:
        """Blend a noisy release with those remembered, in place, and remember it.

        Args:
            release: the noisy, flat gradient: its sum was multiplied by `sum_weight`.
            recollection: what is remembered.
            weights: the model's flat weights, which follow from releases.

        Returns:
            Figures about the memory by name, functions of the same.
        """
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": self.kind, **asdict(self), "sum_weight": self.sum_weight}

"""What is remembered of past releases: a part of the state of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from discreet.memory.groups import Group

if TYPE_CHECKING:
    from discreet.noise.gaussian import Released


@dataclass(kw_only=True)
class Recollection:
    """The last releases, in one ring, and what was derived from them. Everything in it was released.

    Attributes:
        past: the ring [K - 1, P]; release n lies in row n mod (K - 1).
        branch: room for the memory's share of a release; between releases it holds nothing that counts.
        groups: the parts of the flat vector that remember in their own way.
        trend: mu, an exponential moving average of the releases; None where the memory has none.
        exponents: rho of each group, in float64; NaN where a group has no matrix, or it was not looked at yet.
        remembered: how many releases there were.
    """

    past: Tensor
    branch: Tensor
    groups: tuple[Group, ...]
    trend: Tensor | None = None
    exponents: Tensor | None = None
    remembered: int = 0

    @property
    def held(self) -> int:
        """M, how many lags there are to look back to."""
        return min(self.remembered, len(self.past))

    def mix(self, weights: Sequence[float], span: slice) -> Tensor:
        """The weighted sum of the releases held, newest first, over a span; it lies in `branch`."""
        if len(weights) != self.held:
            raise ValueError(f"{len(weights)} weights are given for {self.held} releases")
        out = self.branch[span]
        if not self.held:
            return out.zero_()
        rows = [0.0] * self.held
        for lag, weight in enumerate(weights, start=1):
            rows[(self.remembered - lag) % len(self.past)] = weight
        return torch.mv(self.past[: self.held, span].t(), self.past.new_tensor(rows), out=out)

    def remember(self, release: Released) -> None:
        """Put a release in the place of the oldest."""
        if len(self.past):
            self.past[self.remembered % len(self.past)].copy_(release)
        self.remembered += 1

    def tensors(self) -> dict[str, Tensor]:
        """What has to be saved beside `remembered`, by name."""
        kept = {"past": self.past, "trend": self.trend, "exponents": self.exponents}
        return {name: tensor for name, tensor in kept.items() if tensor is not None}

    def load(self, remembered: int, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `tensors` gave."""
        for name, tensor in self.tensors().items():
            tensor.copy_(tensors[name])
        self.remembered = remembered

"""A filter over past releases: FO-DP-SGD's before the noise, Post-FM-DP-SGD's after the release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from discreet.memory.kernels import Kernel, depth
from discreet.memory.memory import Memory

if TYPE_CHECKING:
    from torch import Tensor

    from discreet.gradients.layout import FlatLayout
    from discreet.memory.recollection import Recollection
    from discreet.noise.gaussian import Released


@dataclass(frozen=True, kw_only=True)
class FilteringMemory(Memory):
    """A weighted mean of past releases, with the same fixed weights for all parameters.

    Before the noise, s~_t = (beta s_t + noise) + (1 - beta) sum_j a_j s~_(t-j). After it, with u_t = s_t + noise,
    d_t = beta u_t + (1 - beta) sum_j a_j u_(t-j), or d_(t-j) in place of u_(t-j) where the filter is recursive.

    Attributes:
        kernel: the weights; None remembers nothing.
        before_noise: whether beta multiplies the clipped sum (and the noise stays), or the release, noise and all.
        recursive: whether blends are remembered. What is before the noise is, always: the blend is the release.
    """

    kind: ClassVar[str] = "filtering"

    kernel: Kernel | None
    before_noise: bool = True
    recursive: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.before_noise and not self.recursive:
            raise ValueError(
                "recursive is False; before the noise the only releases there are to remember are blends"
            )

    @property
    def lags(self) -> int:
        """How many releases are remembered."""
        return 0 if self.kernel is None else super().lags

    @property
    def sum_weight(self) -> float:
        """Beta, or 1 where the release is weighed and not the sum."""
        return self.fresh_weight if self.before_noise else 1.0

    def start(self, layout: FlatLayout) -> Recollection:
        """An empty ring, and all parameters in one group."""
        from discreet.memory.groups import whole
        from discreet.memory.recollection import Recollection

        flat = layout.zeros()
        return Recollection(past=flat.new_zeros(self.lags, layout.size), branch=flat, groups=(whole(layout),))

    def blend_(self, release: Released, recollection: Recollection, *, weights: Released) -> dict[str, float]:
        """Add the weighted mean of what is remembered."""
        (group,) = recollection.groups
        shares = [] if self.kernel is None else self.kernel.weights(recollection.held)
        branch = recollection.mix(shares, group.span).mul_(1.0 - self.fresh_weight)
        if not self.recursive:
            recollection.remember(release)
        if not self.before_noise:
            release.mul_(self.fresh_weight)
        release.add_(branch)
        if self.recursive:
            recollection.remember(release)
        if not shares:
            return {}
        return {"memory depth": depth(shares), "memory ratio": ratio(branch, release)}


def ratio(branch: Tensor, blend: Tensor) -> float:
    """The norm of the memory's share over that of the blend; 0 where there is nothing."""
    whole = float(blend.norm())
    return float(branch.norm()) / whole if whole > 0.0 else 0.0

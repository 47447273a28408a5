"""Post-FM-DP-SGD: the releases of DP-SGD, each blended with those before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.memory import FilteringMemory, kernel
from discreet.recipes.remembering import Filtering


@dataclass(frozen=True, kw_only=True)
class PostFMDPSGD(Filtering):
    """DP-SGD with a fractional memory after the release.

    Args:
        recursive: whether past blends are remembered instead of past releases.
    """

    name: ClassVar[str] = "post-fm-dp-sgd"
    summary: ClassVar[str] = "the releases of DP-SGD, each blended with a weighted mean of earlier ones"
    paper: ClassVar[str] = "the post-processing baseline of FO-DP-SGD, arXiv 2605.09890"

    recursive: bool = False

    def memory(self) -> FilteringMemory:
        """A filter after the release."""
        return FilteringMemory(
            fresh_weight=self.fresh_weight,
            window=self.window,
            kernel=kernel(self.kernel, order=self.order, tempering=self.tempering),
            before_noise=False,
            recursive=self.recursive,
        )

"""What an adversary sees of a run, release by release, with all that it knows of earlier ones taken into account."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

if TYPE_CHECKING:
    from discreet.memory import Memory
    from discreet.plan import Plan
    from discreet.training.run import Release, Run

WEIGHTS = "nest.weight"
"""The weights that canaries have to themselves."""


class _Unblended:
    """A memory that keeps a copy of each release as it was before it was blended with earlier ones.

    Whoever knows the earlier releases can take the memory's share off a blend again: this saves the adversary the sums.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.release: Tensor | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    def blend_(self, release: Any, recollection: Any, *, weights: Any) -> dict[str, float]:
        """As the memory does."""
        self.release = release.clone()
        return self._memory.blend_(release, recollection, weights=weights)


def watched(plan: Plan) -> Plan:
    """The same plan, watched: a memory gives away nothing that is hidden by it."""
    return plan if plan.memory is None else replace(plan, memory=cast(Any, _Unblended(plan.memory)))


def evidence(run: Run, release: Release) -> Tensor:
    """For each canary the log of how much likelier an update is if it was in.

    In the sum over the sensitivity a canary is a sampled shift by 1, under noise of the multiplier that plain DP-SGD
    would have.
    """
    plan = run.plan
    seen = run.state.gradient if plan.memory is None else cast(Any, plan.memory).release
    rule = plan.clipping.at(release.number - 1, plan.releases)
    sigma = release.noise_multiplier / plan.sum_weight
    unit = rule.sensitivity * plan.sum_weight / plan.sampler.expected_batch_size
    shift = -run.layout.views(seen)[WEIGHTS][1:, 0].double() / unit
    log_ratio = (shift - 0.5) / sigma**2
    rate = plan.sampler.rate
    if rate == 1.0:
        return log_ratio
    return torch.logaddexp(torch.tensor(math.log1p(-rate), dtype=torch.float64), log_ratio + math.log(rate))

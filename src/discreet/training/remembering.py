"""What is worth telling of a memory of past releases."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.training.run import Release, Run

MARGINAL = "marginal epsilon (not a guarantee)"


def told_of_memory(run: Run, releases: Sequence[Release]) -> dict[str, float]:
    """The means, over a stretch of releases, of the figures about the memory; nothing of a run without one.

    Where layers are clipped apart, also the figure that the paper draws: what one layer would cost alone.
    """
    if run.plan.memory is None:
        return {}
    figures: dict[str, list[float]] = defaultdict(list)
    for release in releases:
        for name, value in release.remembered.items():
            if math.isfinite(value):
                figures[name].append(value)
    told = {name: sum(values) / len(values) for name, values in figures.items()}
    groups = len(set(run.plan.clipping.rule.groups(run.layout)))
    if groups > 1:
        told[MARGINAL] = run.plan.marginal_epsilon(releases[-1].number, groups)
    return told

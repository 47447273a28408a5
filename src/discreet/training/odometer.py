"""How much of the budget is spent, for people to watch."""

from __future__ import annotations

import math
from functools import cached_property

from discreet.plan import Plan


class Odometer:
    """Certified epsilon by number of releases, computed at a few places and rounded up in between.

    Composing privacy loss distributions takes milliseconds, a release may take less; so the figure shown after
    release n is that of the next place at or after n, which is never too small. Where a run ends it is exact.
    """

    def __init__(self, plan: Plan, places: int = 20) -> None:
        self._plan = plan
        self._stride = max(1, math.ceil(plan.releases / places))
        self._known: dict[int, float] = {0: 0.0}

    def spent(self, releases: int, *, exactly: bool = False) -> float:
        """The epsilon of that many releases, or an upper bound on it."""
        place = (
            releases
            if exactly
            else min(math.ceil(releases / self._stride) * self._stride, self._plan.releases)
        )
        if place not in self._known:
            self._known[place] = self.total if place == self._plan.releases else self._plan.epsilon(place)
        return self._known[place]

    @cached_property
    def total(self) -> float:
        """The epsilon of the whole plan."""
        return self._plan.epsilon()

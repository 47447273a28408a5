"""The extreme points of what an acceptance function can be at one candidate: pairs (a, b).

a is the weight of the candidate under D, b its weight under D' (times v). All bounds are linear programmes over
functions w -> (a(w), b(w)) with values in a polygon and a convex objective, so only the polygon's vertices count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.accounting.selective.gates import Acceptance
from discreet.accounting.selective.likelihood import Floats


@dataclass(frozen=True)
class Corners:
    """Vertices (a, b), as two arrays; `log_ratio` is log(b / a).

    `passing_rest` and `record_rest` are 1 - a and 1 - b with their own digits (for `visible` accounting).
    """

    without: Floats
    with_record: Floats
    passing_rest: Floats
    record_rest: Floats

    @property
    def log_ratio(self) -> Floats:
        """log(b / a)."""
        return np.asarray(np.log1p((self.with_record - self.without) / self.without))


def acceptance_corners(acceptance: Acceptance, *, stretch: float = 1.0) -> Corners:
    """The vertices for a gate on an independent batch: (a, (1 - q_v) a + q_v a_1), a and a_1 at either end.

    With `stretch` > 1 the weights under D' may in addition be multiplied by any factor in [1, stretch] (chosen-only
    releases of a buffered choice); the rests are then meaningless.
    """
    low, high, rate = acceptance.low, acceptance.high, acceptance.sample_rate
    ends = [(low, acceptance.high_rejection), (high, acceptance.low_rejection)]
    pairs = [
        (a, a + rate * (a1 - a), rest, rest + rate * (rest1 - rest))
        for a, rest in ends
        for a1, rest1 in (ends if rate > 0.0 and high > low else [(a, rest)])
    ]
    if stretch > 1.0:
        pairs = [
            (a, b * factor, rest, rest1)
            for a, b, rest, rest1 in pairs
            for factor in (1.0, stretch)
        ]
    columns = np.array(sorted(set(pairs))).T
    return Corners(columns[0], columns[1], columns[2], columns[3])

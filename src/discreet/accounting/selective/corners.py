"""The extreme points of what an acceptance function can be at one candidate: pairs (a, b).

a is the weight of the candidate under D, b its weight under D' (times v). All bounds are linear programmes over
functions w -> (a(w), b(w)) with values in a polygon and a convex objective, so only the polygon's vertices count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.accounting.selective.gates import Acceptance
from discreet.accounting.selective.likelihood import Floats, LikelihoodRatio


@dataclass(frozen=True)
class Corners:
    """Vertices (a, b), as two arrays; `log_ratio` is log(b / a).

    `passing_rest` and `record_rest` are 1 - a and 1 - b with their own digits (for `visible` accounting). `score`, if
    an accepted candidate is released together with its score, has the law of the scores' ratio for each vertex.
    """

    without: Floats
    with_record: Floats
    passing_rest: Floats
    record_rest: Floats
    score: tuple[LikelihoodRatio, ...] = ()

    @property
    def log_ratio(self) -> Floats:
        """log(b / a)."""
        return np.asarray(np.log1p((self.with_record - self.without) / self.without))


def acceptance_corners(
    acceptance: Acceptance, *, stretch: float = 1.0, score_multiplier: float | None = None
) -> Corners:
    """The vertices for a gate on an independent batch: (a, (1 - q_v) a + q_v a_1), a and a_1 at either end.

    With `stretch` > 1 the weights under D' may in addition be multiplied by any factor in [1, stretch] (chosen-only
    releases of a buffered choice); the rests are then meaningless.

    With `score_multiplier` the noisy score is released with an accepted candidate. Given the candidate and the batch
    without the record, its ratio is 1 - q_v + q_v r L with r = a_1 / a, which is b / a times that of a Gaussian sampled
    at the tilted rate q_v r / (1 - q_v + q_v r) (Theorem same-batch covers the truncation by the threshold).
    """
    low, high, rate = acceptance.low, acceptance.high, acceptance.sample_rate
    ends = [(low, acceptance.high_rejection), (high, acceptance.low_rejection)]
    vertices = [
        (
            a,
            a + rate * (a1 - a),
            rest,
            rest + rate * (rest1 - rest),
            tilted_rate(rate, a1 / a if a > 0.0 else np.inf),
        )
        for a, rest in ends
        for a1, rest1 in (ends if rate > 0.0 and high > low else [(a, rest)])
    ]
    if stretch > 1.0:
        vertices = [
            (a, b * f, rest, rest1, tilt) for a, b, rest, rest1, tilt in vertices for f in (1.0, stretch)
        ]
    vertices = sorted(set(vertices))
    columns = np.array(vertices).T
    score = (
        ()
        if score_multiplier is None
        else tuple(LikelihoodRatio(float(t), score_multiplier) for t in columns[4])
    )
    return Corners(columns[0], columns[1], columns[2], columns[3], score)


def tilted_rate(rate: float, ratio: float) -> float:
    """The probability that the record is in the batch, given acceptance that it makes `ratio` times as likely."""
    if not np.isfinite(ratio):
        return 1.0 if rate > 0.0 else 0.0
    return min(1.0, rate * ratio / (1.0 + rate * (ratio - 1.0)))

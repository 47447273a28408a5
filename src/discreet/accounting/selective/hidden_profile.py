"""`hidden` accounting as a privacy profile, for a gate on an independent validation batch (per release).

The released laws are p a / Z and p v b / Z'. For one direction let f be the weight that comes first in the
divergence and s the other one (f = v b, s = a when a record is added), with means F and S:

    H_g = sup over (a, b) of E[(f - g r s)_+] / F,   r = F / S,   g = e^epsilon.

Theorem hidden-profile. If for numbers delta and lambda

    G(r) = E[ max over corners and t in {0, 1} of ( t (f - g r s) - delta f - lambda (f - r s) ) ] <= 0

at both ends of an interval of ratios r, then H_g <= delta for every acceptance function whose ratio lies in it: G is a
maximum of functions that are linear in r, hence convex in r, and at the function's own ratio the lambda term has mean
0. Intervals that cover all ratios give the supremum from above. delta and lambda are found by cutting planes; only the
inequality counts. H is computed at some epsilons and joined by chords in e^epsilon, above which no convex curve lies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.accounting.profiles import Profile
from discreet.accounting.selective.corners import Corners
from discreet.accounting.selective.likelihood import ROUNDING, Floats, LikelihoodRatio
from discreet.accounting.selective.lines import expected_largest_line, expected_parts
from discreet.accounting.selective.plain import plain_profile
from discreet.accounting.selective.powers import Indices
from discreet.accounting.selective.tables import joined, knots_for
from discreet.accounting.selective.visible_profile import LARGEST_EPSILON

_INTERVALS = 4
_SPLIT = 3
_ROUNDS = 4
_PRECISION = 1e-3
_NEGLIGIBLE = 1e-25
_CUTS = 14
_CUT_SETTLED = 1e-4
_REACH = 11.5


@dataclass(frozen=True)
class _Side:
    """One direction. For each value a of the weight under D, the weights under D' lie between `fewest` and `most`.

    `added` tells which one comes first in the divergence; `least` bounds F from below, `low` and `high` F / S.
    """

    added: bool
    a: Floats
    fewest: Floats
    most: Floats
    least: float
    low: float
    high: float


def hidden_profile(law: LikelihoodRatio, corners: Corners) -> Profile:
    """The exact profile per release."""
    if np.ptp(corners.without) == 0.0 and np.array_equal(corners.without, corners.with_record):
        return plain_profile(law)  # every candidate is accepted alike: nothing is reweighted
    knots, added, removed = _curves(law, tuple(corners.without), tuple(corners.with_record))
    return Profile(add=joined(knots, added), remove=joined(knots, removed))


@lru_cache(maxsize=64)
def _curves(
    law: LikelihoodRatio, without: tuple[float, ...], with_record: tuple[float, ...]
) -> tuple[Floats, Floats, Floats]:
    a, b = np.array(without), np.array(with_record)
    low, high = law.mean_range(a.max() / a.min())
    low, high = low * (b / a).min() * (1.0 - ROUNDING), high * (b / a).max() * (1.0 + ROUNDING)
    values = np.unique(a)
    fewest = np.array([b[a == value].min() for value in values])
    most = np.array([b[a == value].max() for value in values])
    add = _Side(True, values, fewest, most, float(b.min()), low, high)
    remove = _Side(False, values, fewest, most, float(a.min()), 1.0 / high, 1.0 / low)
    knots = _knots(law, a, b, high / low)
    return knots, _largest_divergence(law, add, knots), _largest_divergence(law, remove, knots)


def _knots(law: LikelihoodRatio, a: Floats, b: Floats, spread: float) -> Floats:
    """Where to compute: the scale of a typical loss, and the largest one."""
    by_test = np.log((b / a).max() / (b / a).min())
    scale = np.sqrt(2.0 * np.pi) * float(law.excess(np.ones(1))[0]) + by_test
    furthest = np.abs(law.log_at(np.array([-_REACH, _REACH + law.mu]))).max()
    return knots_for(float(scale), min(float(furthest + by_test + np.log(spread)), LARGEST_EPSILON))


def _largest_divergence(law: LikelihoodRatio, side: _Side, epsilons: Floats) -> Floats:
    """An upper bound on H at each epsilon: branch and bound over the logarithm of the ratio."""
    edges = np.linspace(np.log(side.low), np.log(side.high), _INTERVALS + 1)
    row = np.repeat(np.arange(len(epsilons)), _INTERVALS)
    left, right = np.tile(edges[:-1], len(epsilons)), np.tile(edges[1:], len(epsilons))
    bound, attained = np.zeros(len(epsilons)), np.zeros(len(epsilons))
    for attempt in range(_ROUNDS):
        value = _bound_on_interval(law, side, np.exp(epsilons), row, np.exp(left), np.exp(right), attained)
        finished = (value <= attained[row] * (1.0 + _PRECISION) + _NEGLIGIBLE) | (attempt == _ROUNDS - 1)
        np.maximum.at(bound, row[finished], value[finished])
        row, left, right = row[~finished], left[~finished], right[~finished]
        if not len(row):
            break
        parts = left[:, None] + (right - left)[:, None] * np.linspace(0.0, 1.0, _SPLIT + 1)
        row, left, right = np.repeat(row, _SPLIT), parts[:, :-1].ravel(), parts[:, 1:].ravel()
    return np.minimum.accumulate(np.clip(bound, 0.0, 1.0))


def _bound_on_interval(
    law: LikelihoodRatio, side: _Side, g: Floats, row: Indices, left: Floats, right: Floats, attained: Floats
) -> Floats:
    """The smallest certified delta for ratios in [left, right] at g[row].

    Each trial point (delta, lambda) gives a cut delta >= (N - lambda m) / F, with N, F, m = F - r S of the maximiser.
    Of the cuts that fall with lambda and of those that rise the latest are kept; they meet at the next trial point.
    Raises `attained`, the divergences that single acceptance functions reach; below them nothing has to be found.
    """
    delta, tilt = np.zeros(len(row)), np.zeros(len(row))
    falling, rising = np.zeros((2, len(row))), np.zeros((2, len(row)))  # delta >= height + slope lambda
    best = np.ones(len(row))
    active = np.arange(len(row))
    for _ in range(_CUTS):
        point = g[row[active]], delta[active], tilt[active]
        over_left, over_right = (_left_side(law, side, r[active], *point) for r in (left, right))
        # G falls by at least `least` per unit of delta.
        excess = np.maximum(np.maximum(over_left, over_right), 0.0) / side.least
        best[active] = np.minimum(best[active], delta[active] + excess)
        worse = np.where(over_left >= over_right, left[active], right[active])
        height, slope, reached = _cut(law, side, worse, *point)
        np.maximum.at(attained, row[active], reached)
        down = slope <= 0.0
        falling[:, active[down]] = height[down], slope[down]
        rising[:, active[~down]] = height[~down], slope[~down]
        gap = rising[1, active] - falling[1, active]
        with np.errstate(divide="ignore", invalid="ignore"):
            tilt[active] = np.where(gap > 0.0, (falling[0, active] - rising[0, active]) / gap, 0.0)
        next_delta = np.maximum(falling[0, active] + falling[1, active] * tilt[active], 0.0)
        reference = np.maximum(attained[row[active]], next_delta) * (1.0 + _CUT_SETTLED) + _NEGLIGIBLE
        open_still = best[active] > reference
        delta[active] = next_delta
        active = active[open_still]
        if not len(active):
            break
    return best


def _lines(side: _Side, r: Floats, g: Floats, delta: Floats, tilt: Floats) -> tuple[Floats, Floats, Floats]:
    """G's lines, t = 0 before t = 1: coefficients of a, of v, and the weight under D' that is worst for each."""
    ones, ratio = np.ones_like(g), r
    on_first = np.stack([-delta - tilt, ones - delta - tilt], axis=1)
    on_second = np.stack([ratio * tilt, ratio * (tilt - g)], axis=1)
    on_a, on_b = (on_second, on_first) if side.added else (on_first, on_second)
    weight = np.where(on_b[:, :, None] > 0.0, side.most, side.fewest)
    intercepts, slopes = on_a[:, :, None] * side.a, on_b[:, :, None] * weight
    return tuple(x.reshape(len(g), -1) for x in (intercepts, slopes, weight))  # type: ignore[return-value]


def _left_side(
    law: LikelihoodRatio, side: _Side, r: Floats, g: Floats, delta: Floats, tilt: Floats
) -> Floats:
    return expected_largest_line(law, *_lines(side, r, g, delta, tilt)[:2])


def _cut(
    law: LikelihoodRatio, side: _Side, r: Floats, g: Floats, delta: Floats, tilt: Floats
) -> tuple[Floats, Floats, Floats]:
    """Height and slope in lambda of the cut that the maximiser gives, and the divergence that it attains itself."""
    intercepts, slopes, weight = _lines(side, r, g, delta, tilt)
    zero = np.zeros_like(weight)
    a = np.broadcast_to(np.tile(side.a, 2), weight.shape)
    taken = np.repeat([0.0, 1.0], len(side.a))
    parts = [(a, zero), (zero, weight), (taken * a, zero), (zero, taken * weight)]
    mean_a, mean_b, taken_a, taken_b = expected_parts(law, intercepts, slopes, parts)
    f, s, tf, ts = (mean_b, mean_a, taken_b, taken_a) if side.added else (mean_a, mean_b, taken_a, taken_b)
    return (tf - g * r * ts) / f, -(f - r * s) / f, np.maximum(tf / f - g * ts / s, 0.0)

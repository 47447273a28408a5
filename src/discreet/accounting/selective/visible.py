"""`visible` accounting in Renyi divergence, for a gate on an independent validation batch (per trial).

A trial publishes either "rejected" or its candidate. Three bounds, each valid for every trial; all are fixed in
advance, so the smallest may be taken at every order.
"""

from __future__ import annotations

import numpy as np

from discreet.accounting.selective.corners import Corners
from discreet.accounting.selective.curves import convex_curve
from discreet.accounting.selective.gates import Acceptance
from discreet.accounting.selective.likelihood import LARGEST_MU, ROUNDING, Floats, LikelihoodRatio
from discreet.accounting.selective.plain import sampled_rdp
from discreet.accounting.selective.powers import Indices, PowerTable, expected_maximum, power_table
from discreet.accounting.selective.tangents import Maximiser, between_landmarks, landmarks, scaled_factors

_COINS = 24
_PRECISION = 5e-4
_SPLIT = 3
_ROUNDS = 12
_ASCENTS = 6


def released_rdp(law: LikelihoodRatio, test: LikelihoodRatio, orders: Floats) -> Floats:
    """Bound 1: as if candidate and noisy score were always published, two sampled Gaussians composed."""
    return sampled_rdp(law, orders) + sampled_rdp(test, orders)


def thinned_rdp(law: LikelihoodRatio, acceptance: Acceptance, orders: Floats) -> Floats:
    """Bound 2, closed form.

    Theorem thinning: a trial post-processes "toss a public coin of probability c in [high, 1]; on heads release the
    candidate, then the bit Bernoulli(a(w) / c)". Mixing by a public coin averages exp((alpha-1) R) with 1. The best
    of several c is taken at each order; every one of them is valid.
    """
    high = acceptance.high
    coins = high + (1.0 - high) * np.linspace(0.0, 1.0, _COINS + 1)[1:] ** 2 if high < 1.0 else np.ones(1)
    inner = (orders - 1.0)[:, None] * (
        sampled_rdp(law, orders)[:, None] + _bernoulli_rdp(acceptance, orders[:, None], coins)
    )
    # log(1 - c + c exp(inner)), for small and for large exponents.
    with np.errstate(over="ignore", divide="ignore"):
        mixed = np.where(
            inner < 1.0,
            np.log1p(coins * np.expm1(np.minimum(inner, 1.0))),
            np.logaddexp(np.log1p(-coins), np.log(coins) + inner),
        )
    return convex_curve(orders, mixed.min(axis=1))


def _bernoulli_rdp(acceptance: Acceptance, orders: Floats, coins: Floats) -> Floats:
    """The Renyi divergence of Bernoulli(a / c) and Bernoulli(a' / c), at its worst: jointly convex, so at vertices."""
    low, high, rate = acceptance.low, acceptance.high, acceptance.sample_rate
    if rate == 0.0 or low == high:
        return np.zeros(np.broadcast_shapes(orders.shape, coins.shape))
    curves = []
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        slack = coins - high
        for one, two, rest in (
            (low, low + rate * (high - low), acceptance.high_rejection - acceptance.low_rejection),
            (high, high - rate * (high - low), 0.0),
        ):
            # c - a and c - a' without cancellation: (c - high) + (high - a).
            rest_one = slack + rest
            rest_two = slack + (rest + (one - two))
            for p, p_rest, r, r_rest in ((one, rest_one, two, rest_two), (two, rest_two, one, rest_one)):
                terms = np.logaddexp(
                    orders * np.log(p) + (1.0 - orders) * np.log(r),
                    orders * np.log(p_rest) + (1.0 - orders) * np.log(r_rest),
                ) - np.log(coins)
                curves.append(np.where(np.isnan(terms), np.inf, terms) / (orders - 1.0))
    return np.asarray(np.maximum.reduce(curves))


def exact_rdp(law: LikelihoodRatio, corners: Corners, orders: Floats) -> tuple[Floats, Floats]:
    """Bound 3, the exact one: RDP per trial in both directions, (record added, record removed).

    Theorem visible-rdp. With the rejections, F = E[v^P b^P a^(1-P)] + (1-Z')^P (1-Z)^(1-P). For acceptance functions
    whose ratio rho = (1-Z')/(1-Z) lies in an interval, the second term is below (1-Z) times the chord of rho^P there,
    which is linear: the supremum over them is at most E[ max over corners of (...) ]. Intervals that cover every
    possible rho, split until the chord is close, approach the supremum from above.
    """
    if law.sample_rate > 0.0 and law.mu > LARGEST_MU:
        return np.full_like(orders, np.inf), np.full_like(orders, np.inf)
    spread_out = corners.passing_rest.max() / corners.passing_rest.min()
    low, high = law.mean_range(spread_out)
    step = np.log1p((corners.record_rest - corners.passing_rest) / corners.passing_rest)
    table = power_table(law, np.concatenate([orders, 1.0 - orders]))
    log_moment = _largest_over_ratios(table, corners, np.log(low) + step.min(), np.log(high) + step.max())
    return convex_curve(orders, log_moment[: len(orders)]), convex_curve(orders, log_moment[len(orders) :])


def _largest_over_ratios(table: PowerTable, corners: Corners, low: float, high: float) -> Floats:
    """An upper bound on log F over all acceptance functions, by branch and bound on log rho in [low, high]."""
    power = table.powers
    factor, log_largest = scaled_factors(corners, power)
    log_accept = log_largest + table.log_scale
    log_unit = np.maximum(0.0, np.maximum(log_accept, np.maximum(power * low, power * high)))
    factor = factor * np.exp(log_accept - log_unit)[:, None]
    one, rest = np.exp(-log_unit), corners.passing_rest.max()
    bound, attained = np.zeros(len(power)), np.zeros(len(power))
    row, left, right = _first_cover(table, corners, factor, log_unit, low, high)
    for attempt in range(_ROUNDS):
        value, gap = _bound_on_interval(table, corners, factor, log_unit, row, left, right)
        gap = gap * rest
        # The maximiser on an interval is an acceptance function; its true value is short of `value` by at most the gap.
        np.maximum.at(attained, row, value - gap)
        tolerance = _PRECISION * np.maximum(attained - one, 0.0) + ROUNDING
        finished = (gap <= tolerance[row]) | (value <= attained[row] + tolerance[row])
        if attempt == _ROUNDS - 1:
            finished[:] = True
        np.maximum.at(bound, row[finished], value[finished])
        row, left, right = row[~finished], left[~finished], right[~finished]
        if not len(row):
            break
        edges = left[:, None] + (right - left)[:, None] * np.linspace(0.0, 1.0, _SPLIT + 1)
        row, left, right = np.repeat(row, _SPLIT), edges[:, :-1].ravel(), edges[:, 1:].ravel()
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(bound) + log_unit, 0.0))


def _first_cover(
    table: PowerTable, corners: Corners, factor: Floats, log_unit: Floats, low: float, high: float
) -> tuple[Indices, Floats, Floats]:
    """Three intervals of log rho per power that cover [low, high]: a narrow one where the maximum seems to be.

    The place is found by ascent at some powers (tangent at rho, maximiser, its own rho); a wrong place costs time only.
    """
    power = table.powers
    some = landmarks(power)
    part = power_table(table.grid.law, power[some])
    search = Maximiser(part, factor[some], corners.passing_rest, corners.record_rest)
    best, best_value = np.zeros(len(some)), np.full(len(some), -np.inf)
    for start in (low, high):
        log_rho = np.full(len(some), start)
        for _ in range(_ASCENTS):
            height = np.exp(power[some] * log_rho - log_unit[some])
            constant = ((1.0 - power[some]) * height)[:, None] * corners.passing_rest
            slope = (power[some] * height / np.exp(log_rho))[:, None] * corners.record_rest
            moment, passing, record = search.attained(np.ones(len(some)), constant, slope)
            log_rho = np.clip(np.log(record / passing), low, high)
        value = moment + passing * np.exp(power[some] * log_rho - log_unit[some])
        best, best_value = np.where(value > best_value, log_rho, best), np.maximum(value, best_value)
    place = between_landmarks(power, some, best)
    # Half of the precision on the divergence, whose size is at least that of the plain ratio's.
    curvature = np.abs(power * (power - 1.0))
    size = np.minimum(np.expm1(np.minimum(table.log_scale, 1.0)), 1.0)
    half = np.sqrt(_PRECISION * size / curvature) + ROUNDING
    left, right = np.maximum(low, place - half), np.minimum(high, place + half)
    row = np.tile(np.arange(len(power)), 3)
    lefts = np.concatenate([left, np.full_like(left, low), right])
    rights = np.concatenate([right, left, np.full_like(right, high)])
    keep = (rights > lefts) | (row == np.arange(len(row)))
    return row[keep], lefts[keep], rights[keep]


def _bound_on_interval(
    table: PowerTable,
    corners: Corners,
    factor: Floats,
    log_unit: Floats,
    row: Indices,
    left: Floats,
    right: Floats,
) -> tuple[Floats, Floats]:
    """The bound for log rho in [left, right], and the largest gap between the chord and rho^P there."""
    power, width = table.powers[row], right - left
    start, end = np.exp(power * left - log_unit[row]), np.exp(power * right - log_unit[row])
    climb = power * width
    rise = np.where(
        climb > 0.0, -end * np.expm1(-np.maximum(climb, 0.0)), start * np.expm1(np.minimum(climb, 0.0))
    )
    # The chord is start + steepness (rho / exp(left) - 1).
    with np.errstate(invalid="ignore", divide="ignore"):
        steepness = np.where(width > 0.0, rise / np.expm1(width), power * start)
    constant, slope = start - steepness, steepness / np.exp(left)
    test = expected_maximum(
        table,
        row,
        factor[row],
        constant[:, None] * corners.passing_rest,
        slope[:, None] * corners.record_rest,
    )
    # chord - rho^P is largest where P rho^(P-1) is the chord's slope.
    with np.errstate(invalid="ignore", divide="ignore"):
        at = np.log(np.abs(steepness / power)) - (power * left - log_unit[row])
        at = np.clip(np.nan_to_num(at / (power - 1.0)), 0.0, width)
    gap = np.maximum(start + steepness * np.expm1(at) - np.exp(power * (left + at) - log_unit[row]), 0.0)
    return test.bound, gap

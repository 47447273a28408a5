"""`hidden` accounting in Renyi divergence, for a gate on an independent validation batch (per release).

Under D the released law is p(w) a(w) / Z, under D' it is p(w) v(w) b(w) / Z', where (a, b) lies between the corners.
Write F = E[v^P b^P a^(1-P)]; exp((alpha-1) D) = F Z^(P-1) Z'^(-P), with P = alpha (record added) or 1 - alpha.
"""

from __future__ import annotations

import numpy as np

from discreet.accounting.selective.corners import Corners
from discreet.accounting.selective.curves import convex_curve
from discreet.accounting.selective.likelihood import LARGEST_MU, ROUNDING, Floats, LikelihoodRatio
from discreet.accounting.selective.plain import sampled_rdp
from discreet.accounting.selective.powers import PowerTable, expected_maximum, power_table
from discreet.accounting.selective.tangents import best_tangents, scaled_factors

_ROUNDS = 14


def hidden_rdp(law: LikelihoodRatio, corners: Corners, orders: Floats) -> tuple[Floats, Floats]:
    """Bound B, the exact one: RDP per release in both directions, (record added, record removed).

    Theorem hidden-B. Z'^P Z^(1-P) is jointly convex and homogeneous, so it lies above its tangent at every ratio
    rho = Z'/Z. Hence F <= M ((1-P) rho^P Z + P rho^(P-1) Z') for all acceptance functions implies
    F <= M Z'^P Z^(1-P), whatever their actual ratio: *any* rho and M with

        E[ max over corners of ( v^P b^P a^(1-P) - M ((1-P) rho^P a + P rho^(P-1) v b) ) ] <= 0

    certify D <= log M / (alpha-1). The best rho makes the bound exact (F as a function of rho is concave, M rho^P is
    convex, so a line separates them). The search for rho is a heuristic; the inequality alone is the certificate.
    """
    if law.sample_rate > 0.0 and law.mu > LARGEST_MU:
        return _crude_rdp(law, corners, orders)
    powers = np.concatenate([orders, 1.0 - orders])
    table = power_table(law, powers)
    log_moment = _certified_log_moment(table, corners, *best_tangents(law, corners, powers))
    return convex_curve(orders, log_moment[: len(orders)]), convex_curve(orders, log_moment[len(orders) :])


def _certified_log_moment(table: PowerTable, corners: Corners, rho: Floats, log_guess: Floats) -> Floats:
    """The smallest log M that the dual certifies with these tangents, per power."""
    power = table.powers
    factor, log_largest = scaled_factors(corners, power)
    constant = (power - 1.0)[:, None] * corners.without
    slope = -(power / rho)[:, None] * corners.with_record
    # M rho^P = exp(log_level), in units of the largest corner's factor and of E[v^P].
    unit = log_largest + table.log_scale - power * np.log(rho)
    log_level = np.clip(log_guess - unit, -30.0, -np.log(corners.without.min()))
    certified = np.full_like(power, np.inf)
    rows = np.arange(len(power))
    for attempt in range(_ROUNDS):
        scale = np.exp(np.clip(-log_level[rows], -600.0, 600.0))[:, None]
        test = expected_maximum(table, rows, factor[rows] * scale, constant[rows], slope[rows])
        # The left side is convex in M, and its maximiser's own root M = F / T lies at or left of the whole root, so
        # the steps of the certifying rounds reach a little further.
        attained = test.moment - test.bound
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(attained > 0.0, np.log(test.moment / attained), 1.0)
        if attempt > 0:
            holds = test.bound <= 0.0
            certified[rows[holds]] = log_level[rows[holds]]
            rows, step = rows[~holds], step[~holds] * 1.02**attempt + ROUNDING
        log_level[rows] += step
        if not len(rows):
            break
    return np.minimum(certified + unit + ROUNDING * np.abs(unit), _crude_log_moment(table, corners))


def _crude_log_moment(table: PowerTable, corners: Corners) -> Floats:
    """F, Z and Z' bounded one by one: loose, but finite at every setting and order."""
    return table.log_scale + _crude_factor(corners, table.powers)


def _crude_factor(corners: Corners, power: Floats) -> Floats:
    up, log_a, log_b = power > 0.0, np.log(corners.without), np.log(corners.with_record)
    log_without = np.where(up, log_a.max(), log_a.min())
    log_with_record = np.where(up, log_b.min(), log_b.max())
    largest = scaled_factors(corners, power)[1]
    return np.asarray(largest + (power - 1.0) * log_without - power * log_with_record)


def _crude_rdp(law: LikelihoodRatio, corners: Corners, orders: Floats) -> tuple[Floats, Floats]:
    """Where there is next to no noise."""
    plain = sampled_rdp(law, orders)
    added, removed = (
        plain + _crude_factor(corners, power) / (orders - 1.0) for power in (orders, 1.0 - orders)
    )
    return added, removed

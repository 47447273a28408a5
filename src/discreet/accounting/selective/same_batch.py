"""A gate on the training batch itself (DPSR-CG): bounds per release (`hidden`) and per trial (`visible`).

The acceptance a(B) depends on the batch and on released history only; the candidate's noise is independent of it.
Given the other records' batch B, let r = a(B + x) / a(B). Both accountings condition on B (divergences are jointly
convex) and look at 1 - q + q r L, which is (1 - q + q r) times the ratio of a Gaussian sampled at the tilted rate
q r / (1 - q + q r).

If the gate's own noisy metric is released with the candidate (as the reference of later trials), L is that of the
joint multiplier (sigma^-2 + sigma_v^-2)^(-1/2): the metric's ratio on the accepted half-line is below r L in convex
order, because truncating a Gaussian to a half-line never spreads it.
"""

from __future__ import annotations

import numpy as np

from discreet.accounting.profiles import Profile
from discreet.accounting.selective.corners import tilted_rate
from discreet.accounting.selective.curves import convex_curve
from discreet.accounting.selective.gates import BatchGate
from discreet.accounting.selective.likelihood import ROUNDING, Floats, LikelihoodRatio
from discreet.accounting.selective.powers import log_moments
from discreet.accounting.selective.visible_profile import LARGEST_EPSILON

_MIXTURES = 64


def _tilted(law: LikelihoodRatio, ratio: float) -> LikelihoodRatio:
    return LikelihoodRatio(tilted_rate(law.sample_rate, ratio), law.noise_multiplier)


def _height(law: LikelihoodRatio, ratio: float) -> float:
    """1 - q + q r, the mean of 1 - q + q r L."""
    return 1.0 + law.sample_rate * (ratio - 1.0)


def hidden_rdp(law: LikelihoodRatio, low: float, high: float, orders: Floats) -> tuple[Floats, Floats]:
    """RDP per release if the ratio r lies in [low, high]: (record added, record removed). Attained.

    Theorem same-batch. The ratio of the released laws is (1 - q + q r L) / (1 - q + q E[r]). E[(1 - q + q r L)^P] is
    convex in r, so the worst law of r is two-point on {low, high}; only its mean is left. With s = 1 - q + q E[r] the
    moment is (chord of the two) / s^P, which has one stationary point.
    """
    powers = np.concatenate([orders, 1.0 - orders])
    least, most = (log_moments(_tilted(law, r), powers) for r in (low, high))
    if not np.isfinite(least + most).all():
        return np.full_like(orders, np.inf), np.full_like(orders, np.inf)
    stretch = _height(law, high) / _height(law, low)
    if stretch <= 1.0:
        moment = np.maximum(least, most)
    else:
        # x = s / s_low runs from 1 to `stretch`; in units of exp(scale) the chord is start + slope (x - 1).
        top = most + powers * np.log(stretch)
        scale = np.maximum(least, top)
        start, end = np.exp(least - scale), np.exp(top - scale)
        slope = (end - start) / (stretch - 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            at = np.clip(
                np.nan_to_num(powers * (slope - start) / (slope * (powers - 1.0)), nan=1.0), 1.0, stretch
            )
            inside = np.log(start + slope * (at - 1.0)) - powers * np.log(at) + scale
        moment = np.maximum(np.maximum(least, most), np.where(np.isnan(inside), np.inf, inside))
    moment = moment + ROUNDING
    return convex_curve(orders, moment[: len(orders)]), convex_curve(orders, moment[len(orders) :])


def hidden_profile(law: LikelihoodRatio, low: float, high: float) -> Profile:
    """The profile per release if the ratio r lies in [low, high].

    Theorem same-batch. (1 - q + q r L - g s)_+ is convex in r: two-point laws again. For the mean s in a short
    interval, the price of each of the two is below its chord in s (prices are convex in s), the weights are linear in
    s, and of the product, a parabola, the chord or the tangent lies above; divided by s that is largest at an end.
    """
    ends = [(_tilted(law, r), _height(law, r)) for r in (low, high)]
    edges = (
        np.linspace(ends[0][1], ends[1][1], _MIXTURES + 1)
        if ends[1][1] > ends[0][1]
        else np.array([ends[0][1]])
    )

    def side(epsilon: Floats, added: bool) -> Floats:
        g = np.exp(np.minimum(epsilon, LARGEST_EPSILON))[:, None]
        if added:
            prices = [height * part.excess(g * edges / height) for part, height in ends]
        else:
            prices = [g * height * part.shortfall(edges / (g * height)) for part, height in ends]
        return np.asarray(np.clip(_worst_mixture(edges, *prices) * (1.0 + ROUNDING), 0.0, 1.0))

    return Profile(add=lambda epsilon: side(epsilon, True), remove=lambda epsilon: side(epsilon, False))


def _worst_mixture(edges: Floats, low_price: Floats, high_price: Floats) -> Floats:
    """The largest ((1 - w) low_price + w high_price) / s over s in the range of `edges`, w linear in s."""
    if len(edges) == 1:
        return np.asarray(np.maximum(low_price, high_price)[:, 0] / edges[0])
    weight = np.linspace(0.0, 1.0, len(edges))
    mixed = (1.0 - weight) * low_price + weight * high_price
    # On one interval the product of the chords is a parabola; `bend` is its second difference against the chord.
    bend = np.diff(weight) * (np.diff(high_price, axis=1) - np.diff(low_price, axis=1))
    rise = np.maximum(-bend, 0.0) / 4.0
    values = np.maximum(
        (mixed[:, :-1] + rise) / edges[:-1],
        (mixed[:, 1:] + rise) / edges[1:],
    )
    return np.asarray(values.max(axis=1))


def visible_rdp(law: LikelihoodRatio, gate: BatchGate, orders: Floats) -> tuple[Floats, Floats]:
    """RDP per trial: (record added, record removed).

    Theorem same-batch. Given B, the moment a E[(1 - q + q r L)^P] + (1-a) ((1-q) + q (1-a_1) / (1-a))^P is jointly
    convex in (a, a_1), hence largest at a vertex of what the gate allows.
    """
    powers = np.concatenate([orders, 1.0 - orders])
    q = law.sample_rate
    worst = np.zeros_like(powers)
    for a, a1, rest, rest1 in batch_vertices(gate):
        ratio = a1 / a
        accepted = np.log(a) + powers * np.log(_height(law, ratio)) + log_moments(_tilted(law, ratio), powers)
        with np.errstate(divide="ignore", invalid="ignore"):
            rejected = np.log(rest) + powers * (np.log((1.0 - q) * rest + q * rest1) - np.log(rest))
        if rest == 0.0:
            rejected = np.where(powers > 0.0, np.inf if q * rest1 > 0.0 else -np.inf, -np.inf)
        total = np.logaddexp(accepted, rejected)
        worst = np.maximum(worst, np.where(np.isnan(total), np.inf, total))
    worst = worst + ROUNDING
    return convex_curve(orders, worst[: len(orders)]), convex_curve(orders, worst[len(orders) :])


def visible_profile(law: LikelihoodRatio, gate: BatchGate) -> Profile:
    """The profile per trial: the largest over the vertices (Theorem same-batch)."""
    q = law.sample_rate
    vertices = batch_vertices(gate)

    def side(epsilon: Floats, added: bool) -> Floats:
        g = np.exp(np.minimum(epsilon, LARGEST_EPSILON))
        worst = np.zeros_like(g)
        for a, a1, rest, rest1 in vertices:
            part, height = _tilted(law, a1 / a), _height(law, a1 / a)
            rejected = (1.0 - q) * rest + q * rest1
            if added:
                value = a * height * part.excess(g / height) + np.maximum(rejected - g * rest, 0.0)
            else:
                value = a * g * height * part.shortfall(1.0 / (g * height)) + np.maximum(
                    rest - g * rejected, 0.0
                )
            worst = np.maximum(worst, np.where(np.isnan(value), 1.0, value))
        return np.asarray(np.clip(worst * (1.0 + ROUNDING), 0.0, 1.0))

    return Profile(add=lambda epsilon: side(epsilon, True), remove=lambda epsilon: side(epsilon, False))


def batch_vertices(gate: BatchGate) -> list[tuple[float, float, float, float]]:
    """Vertices (a, a_1, 1 - a, 1 - a_1) of { a, a_1 in [low, high], low_ratio <= a_1 / a <= high_ratio }."""
    low, high = gate.low, gate.high
    rests = {low: gate.high_rejection, high: gate.low_rejection}
    found = set()
    for a in (low, high):
        for a1 in (low, high):
            if gate.low_ratio * (1 - 1e-12) <= a1 / a <= gate.high_ratio * (1 + 1e-12):
                found.add((a, a1))
        for ratio in (gate.low_ratio, gate.high_ratio):
            for point in ((a, a * ratio), (a / ratio if ratio > 0.0 else np.inf, a)):
                if all(low * (1 - 1e-12) <= x <= high * (1 + 1e-12) for x in point):
                    found.add((min(max(point[0], low), high), min(max(point[1], low), high)))
    return [(a, a1, rests.get(a, 1.0 - a), rests.get(a1, 1.0 - a1)) for a, a1 in sorted(found)]

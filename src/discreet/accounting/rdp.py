"""Certified Renyi differential privacy (RDP) of an event, and its conversion to (epsilon, delta).

All sums are taken in log space and of positive terms only, so neither overflow nor cancellation can make a
bound too small; an order at which a bound is not a number counts as infinite.
"""

from __future__ import annotations

from functools import lru_cache, singledispatch

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from discreet.accounting.budget import Accounting
from discreet.accounting.events import (
    Event,
    Gaussian,
    PoissonGaussian,
    PoissonPureDP,
    PureDP,
    UnknownEventError,
)

Floats = NDArray[np.float64]

_DOUBLING = [m * 2**k for k in range(6, 14) for m in (1, 1.5)]
ORDERS: Floats = np.array(
    [1 + i / 10 for i in range(1, 100)] + list(range(11, 64)) + [*_DOUBLING, 2**14], dtype=float
)
"""The default orders: tenths to 10.9, integers to 64, then 96, 128, ... 16384 for very large noise."""
ORDERS.setflags(write=False)

_SMALLEST_QUADRATURE_SIGMA = 0.05
_STEPS_PER_SINGULARITY = 6.0


@singledispatch
def rdp_curve(event: Event, orders: Floats, accounting: Accounting) -> Floats:
    """An upper bound, at each order, on the Renyi divergence between neighbours, in both directions.

    Guarantee: add/remove neighbours; registered per kind of event. A kind without a bound is refused.
    """
    raise UnknownEventError(f"there is no certified RDP bound for events of kind {event.kind!r}")


def certified_rdp(
    event: Event, orders: Floats = ORDERS, accounting: Accounting = Accounting.VISIBLE
) -> Floats:
    """`rdp_curve`, checked: never negative, and infinite wherever the bound is not a number. Read-only."""
    if orders is ORDERS:
        return _cached_rdp(event, accounting)
    return _checked(rdp_curve(event, orders, accounting))


@lru_cache(maxsize=4096)
def _cached_rdp(event: Event, accounting: Accounting) -> Floats:
    return _checked(rdp_curve(event, ORDERS, accounting))


def _checked(curve: Floats) -> Floats:
    checked = np.where(np.isnan(curve), np.inf, np.maximum(curve, 0.0))
    checked.setflags(write=False)
    return checked


@rdp_curve.register
def _(event: Gaussian, orders: Floats, accounting: Accounting) -> Floats:
    return orders / (2.0 * event.noise_multiplier**2)


@rdp_curve.register
def _(event: PoissonGaussian, orders: Floats, accounting: Accounting) -> Floats:
    """Mironov, Talwar, Zhang 2019: with v = 1 - q + qL, the larger direction is log E[v^a] / (a - 1)."""
    q, sigma = event.sample_rate, event.noise_multiplier
    if q == 0.0:
        return np.zeros_like(orders)
    if q == 1.0:
        return orders / (2.0 * sigma**2)
    whole = orders == np.floor(orders)
    moments = np.empty_like(orders)
    moments[whole] = [_log_moment_whole(q, sigma, int(order)) for order in orders[whole]]
    if not whole.all():
        fractional = _log_moments_quadrature if sigma >= _SMALLEST_QUADRATURE_SIGMA else _log_moments_between
        moments[~whole] = fractional(q, sigma, orders[~whole])
    return _non_decreasing(moments / (orders - 1.0), orders)


def _non_decreasing(curve: Floats, orders: Floats) -> Floats:
    """The curve with each bound lowered to those at larger orders: Renyi divergence never falls with the order."""
    rising = np.argsort(orders)
    lowered = np.empty_like(curve)
    lowered[rising] = np.minimum.accumulate(curve[rising][::-1])[::-1]
    return lowered


def _log_moment_whole(q: float, sigma: float, order: int) -> float:
    """The logarithm of E[v^a] for a whole a.

    It is log1p of the sum over k >= 2 of C(a,k) q^k (1-q)^(a-k) (exp(k(k-1)/2s^2) - 1). The terms are
    positive: nothing cancels, however small the divergence.
    """
    k, log_binomial = _log_binomials(order)
    exponent = k * (k - 1.0) / (2.0 * sigma**2)
    log_excess = exponent + np.log(-np.expm1(-exponent))
    log_terms = log_binomial + k * np.log(q) + (order - k) * np.log1p(-q) + log_excess
    return float(np.logaddexp(0.0, logsumexp(log_terms)))


@lru_cache(maxsize=256)
def _log_binomials(order: int) -> tuple[Floats, Floats]:
    k = np.arange(2, order + 1, dtype=float)
    return k, gammaln(order + 1.0) - gammaln(k + 1.0) - gammaln(order - k + 1.0)


def _log_moments_quadrature(q: float, sigma: float, orders: Floats) -> Floats:
    """The logarithm of E[v^a] for fractional a by the trapezoidal rule over the normal variable y.

    The integrand is analytic in the strip |Im y| < pi sigma (v has no zero there), so with a step of a
    sixth of that the error is below exp(-12 pi) of the integrand's size: the rule is exact to rounding.
    Because E[v] = 1, E[v^a] - 1 = E[v^a - 1 - a(v - 1)], whose integrand is non-negative: small divergences
    keep their digits.
    """
    mu = 1.0 / sigma
    step = min(0.1, np.pi * sigma / _STEPS_PER_SINGULARITY)
    y = np.arange(-12.0, orders.max() * mu + 12.0, step)
    excess = q * np.expm1(np.minimum(mu * y - mu**2 / 2.0, 700.0))
    log_v = np.log1p(excess)
    log_weight = -(y**2) / 2.0 + np.log(step / np.sqrt(2.0 * np.pi))
    if (orders.max() * log_v + log_weight).max() < 600.0 and orders.max() * log_v.max() < 700.0:
        weight = np.exp(log_weight)
        gained, linear = np.expm1(orders[:, None] * log_v), orders[:, None] * excess
        # Where the record hardly matters the two nearly cancel; what rounding may have taken is put back.
        rounding = 4.0 * np.finfo(float).eps * (np.abs(gained) + np.abs(linear))
        return np.asarray(np.log1p(np.maximum(gained - linear, 0.0) @ weight + rounding @ weight))
    log_v = np.logaddexp(np.log1p(-q), np.log(q) + mu * y - mu**2 / 2.0)
    return np.asarray(logsumexp(orders[:, None] * log_v + log_weight, axis=1))


def _log_moments_between(q: float, sigma: float, orders: Floats) -> Floats:
    """An upper bound on log E[v^a], which is convex in a and so lies below the chord between whole orders."""
    below = np.floor(orders)
    low = np.array([0.0 if order == 1.0 else _log_moment_whole(q, sigma, int(order)) for order in below])
    high = np.array([_log_moment_whole(q, sigma, int(order) + 1) for order in below])
    return np.asarray(low + (orders - below) * (high - low))


@rdp_curve.register
def _(event: PureDP, orders: Floats, accounting: Accounting) -> Floats:
    return rdp_curve(PoissonPureDP(sample_rate=1.0, epsilon=event.epsilon), orders, accounting)


@rdp_curve.register
def _(event: PoissonPureDP, orders: Floats, accounting: Accounting) -> Floats:
    """The exact divergence of the dominating pair: randomised response, mixed at the rate q.

    Every epsilon-private pair (P, Q) is a post-processing of randomised response (Kairouz, Oh, Viswanath
    2015), and sampling turns it into (P, (1-q)P + qQ). Both directions; tighter than the formula for a
    symmetric pair.
    """
    q, epsilon = event.sample_rate, event.epsilon
    if q == 0.0 or epsilon == 0.0:
        return np.zeros_like(orders)
    log_p = np.array([-np.logaddexp(0.0, epsilon), -np.logaddexp(0.0, -epsilon)])
    with np.errstate(divide="ignore"):
        log_mixed = np.logaddexp(np.log1p(-q) + log_p, np.log(q) + log_p[::-1])
    return np.maximum(_two_point_rdp(log_p, log_mixed, orders), _two_point_rdp(log_mixed, log_p, orders))


def _two_point_rdp(log_p: Floats, log_q: Floats, orders: Floats) -> Floats:
    a = orders[:, None]
    return np.asarray(logsumexp(a * log_p + (1.0 - a) * log_q, axis=1) / (orders - 1.0))


def epsilon_from_rdp(curve: Floats, delta: float, orders: Floats = ORDERS) -> float:
    """The smallest epsilon that an RDP curve gives at `delta`.

    Canonne, Kamath, Steinke 2020, Proposition 12. Orders whose divergence is not a number are left out;
    without any finite order the answer is infinity.
    """
    curve = np.where(np.isnan(curve), np.inf, curve)
    if not np.isfinite(curve).any():
        return float("inf")
    # delta <= sqrt(1 - exp(-KL)) (Bretagnolle and Huber), and KL is at most every Renyi divergence.
    if delta**2 + np.expm1(-curve.min()) > 0.0:
        return 0.0
    epsilons = curve + np.log1p(-1.0 / orders) - np.log(delta * orders) / (orders - 1.0)
    return max(0.0, float(epsilons.min()))


def delta_from_rdp(curve: Floats, epsilon: float, orders: Floats = ORDERS) -> float:
    """The smallest delta that an RDP curve gives at `epsilon`; the counterpart of `epsilon_from_rdp`."""
    curve = np.where(np.isnan(curve), np.inf, curve)
    if not np.isfinite(curve).any():
        return 1.0
    by_distance = float(np.sqrt(-np.expm1(-curve.min())))
    log_deltas = (orders - 1.0) * (curve - epsilon + np.log1p(-1.0 / orders)) - np.log(orders)
    return min(1.0, by_distance, float(np.exp(min(0.0, log_deltas.min()))))

"""Bring many different events onto few, without giving up the certificate.

A schedule may use ten thousand different noise multipliers. Each such event is replaced by a *public
mixture* of a few events on a geometric grid, one that costs at least as much: "toss a public coin, then
release by the event that it names". The Renyi moments and the privacy loss distribution of a public mixture
are the mixtures of its parts', so a composition of any length needs one computation per grid event. The
loss is of second order in the grid's ratio (a few tenths of a per cent where the noise alone moves), where
plain rounding would lose in first order.

**Why a mixture dominates.** For the Gaussian with mu = 1/sigma, let d_t(mu) be its hockey-stick divergence at
epsilon t. Then d/dmu d_t = phi(t/mu - mu/2), so along s = d_0(mu), the total variation distance, the slope
of d_t is exp(t/2 - t^2/(2 mu^2)), which increases with mu: every d_t is convex in s. Hence the Gaussian
whose s is the weighted mean of two others' is dominated by their public mixture. Sampling at a fixed rate
maps the divergences by positive factors to divergences at other t (see `profiles.sampled_profile`), which
keeps the inequality in both directions. In the rate q the sampled law (1-q)P + qQ is linear and the
hockey-stick divergence is convex, so the mixture at linear weights dominates too. Divergences that grow
under domination (all f-divergences, hence exp((a-1) Renyi)) follow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import singledispatch

from discreet.accounting.events import Event, Gaussian, PoissonGaussian, PureDP

Charge = tuple[Event, int]
Mixture = tuple[tuple[float, Event], ...]

MAX_DISTINCT = 48
"""Up to so many different events are accounted as they are."""

_MAX_GRID_EVENTS = 96
_MAX_EXACT = 192
"""Where a grid would hardly have fewer events, as when rate and noise both move, so many are left as they are."""
_FINEST_RATIO = 1.04
_SATURATED = 1e-3
_SMALLEST_MULTIPLIER = 1e-150
"""Below it nothing is private anyway, and squares leave the range of floats."""
_WEIGHT_MARGIN = 1e-9
_WEIGHTS = 64


@singledispatch
def spread(event: Event, ratio: float) -> Mixture:
    """A public mixture of events on a geometric grid of that ratio which costs at least as much as `event`.

    Guarantee: the mixture dominates `event` in both directions. Kinds without a rule stay as they are.
    """
    return ((1.0, event),)


@spread.register
def _(event: PoissonGaussian, ratio: float) -> Mixture:
    return tuple(
        (rate_weight * noise_weight, PoissonGaussian(sample_rate=rate, noise_multiplier=multiplier))
        for noise_weight, multiplier in _noise_neighbours(event.noise_multiplier, ratio)
        for rate_weight, rate in _rate_neighbours(event.sample_rate, ratio)
    )


def _noise_neighbours(sigma: float, ratio: float) -> list[tuple[float, float]]:
    exponent = math.floor(math.log(sigma) / math.log(ratio))
    low, high = ratio**exponent, ratio ** (exponent + 1)
    if not low <= sigma < high:  # the logarithm was rounded across a grid point
        low, high = (low / ratio, low) if sigma < low else (high, high * ratio)
    distance_low, distance, distance_high = (math.erf(1.0 / (math.sqrt(8.0) * s)) for s in (low, sigma, high))
    if 1.0 - distance_low < _SATURATED:  # no digits left to interpolate between: round the noise down
        return [(1.0, low)]
    weight = _rounded_up((distance - distance_high) / (distance_low - distance_high))
    return [(weight, low), (1.0 - weight, high)]


def _rate_neighbours(rate: float, ratio: float) -> list[tuple[float, float]]:
    if rate in (0.0, 1.0):
        return [(1.0, rate)]
    exponent = math.ceil(math.log(rate) / math.log(ratio))
    high = min(1.0, ratio**exponent)
    if high < rate:
        high = min(1.0, high * ratio)
    low = ratio ** (exponent - 1)
    if not low < rate:
        low /= ratio
    weight = _rounded_up((rate - low) / (high - low))
    return [(weight, high), (1.0 - weight, low)]


def _rounded_up(weight: float) -> float:
    """The weight of the costlier event, on a grid of its own, so that neighbours in a long schedule become equal."""
    return min(1.0, math.ceil((weight + _WEIGHT_MARGIN) * _WEIGHTS) / _WEIGHTS)


def merged(charges: Sequence[Charge]) -> list[Charge]:
    """The same composition in fewer charges: equal events counted together, Gaussian releases joined exactly.

    Unsampled Gaussian releases compose to the one Gaussian with the squared ratios summed (Dong, Roth, Su
    2022).
    """
    counts: dict[Event, int] = {}
    precision = 0.0
    for event, count in _parts(charges):
        if _is_free(event):
            continue
        if isinstance(event, Gaussian) or (isinstance(event, PoissonGaussian) and event.sample_rate == 1.0):
            ratio = 1.0 / max(event.noise_multiplier, _SMALLEST_MULTIPLIER)
            precision += count * ratio * ratio
        else:
            counts[event] = counts.get(event, 0) + count
    if precision > 0.0:
        counts[Gaussian(noise_multiplier=1.0 / math.sqrt(precision))] = 1
    return list(counts.items())


def _parts(charges: Sequence[Charge]) -> Iterator[Charge]:
    for event, count in charges:
        if isinstance(count, bool) or int(count) != count or count < 0:
            raise ValueError(f"the count of a charge must be a whole number of at least 0, not {count!r}")
        if count:
            yield from ((part, int(count)) for part in event.parts())


def _is_free(event: Event) -> bool:
    if isinstance(event, PoissonGaussian):
        return event.sample_rate == 0.0
    return isinstance(event, PureDP) and event.epsilon == 0.0


def few_distinct(charges: Sequence[Charge]) -> list[tuple[Mixture, int]]:
    """The charges as public mixtures of few distinct events, at least as costly; exact while they are few."""
    exact: list[tuple[Mixture, int]] = [(((1.0, event),), count) for event, count in charges]
    events = {event for event, _ in charges}
    if len(events) <= MAX_DISTINCT:
        return exact
    ratio = _FINEST_RATIO
    while True:
        terms: dict[Mixture, int] = {}
        for event, count in charges:
            mixture = tuple((weight, part) for weight, part in spread(event, ratio) if weight > 0.0)
            terms[mixture] = terms.get(mixture, 0) + count
        distinct = {part for mixture in terms for _, part in mixture}
        if 2 * len(distinct) >= len(events) and len(events) <= _MAX_EXACT:
            return exact
        if len(distinct) <= _MAX_GRID_EVENTS or ratio > 2.0:
            return list(terms.items())
        ratio **= 1.5

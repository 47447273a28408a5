"""Certified privacy profiles of events: hockey-stick divergences as functions of epsilon.

A profile is what a privacy loss distribution is built from (`pld`). For a pair of laws (P, P') the
divergence at epsilon is H(P'||P) = sup over sets S of P'(S) - e^epsilon P(S). Values at negative epsilon
are not asked for: they follow from the other direction, H_{-e}(P'||P) = 1 - exp(-e) + exp(-e) H_e(P||P').
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, singledispatch

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr

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


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Upper bounds on the hockey-stick divergence of one release, for arrays of epsilon >= 0.

    Attributes:
        add: H(M(D + x) || M(D)) at each epsilon.
        remove: H(M(D) || M(D + x)) at each epsilon.
    """

    add: Callable[[Floats], Floats]
    remove: Callable[[Floats], Floats]


@singledispatch
def privacy_profile(event: Event, accounting: Accounting) -> Profile:
    """The certified profile of one release. Registered per kind of event; a kind without one is refused.

    Guarantee: add/remove neighbours. Each function bounds the supremum over neighbours from above, is
    non-increasing, and keeps its *relative* precision far in the tail.
    """
    raise UnknownEventError(f"there is no certified privacy profile for events of kind {event.kind!r}")


@lru_cache(maxsize=256)
def certified_profile(event: Event, accounting: Accounting) -> Profile:
    """`privacy_profile`, kept: some kinds take long to prepare theirs."""
    return privacy_profile(event, accounting)


def gaussian_hockey_stick(epsilon: Floats, noise_multiplier: float) -> Floats:
    """H_{e^epsilon}(N(1, s^2) || N(0, s^2)) = Phi(a) - e^epsilon Phi(a - 1/s), a = 1/2s - s epsilon.

    In the tail both terms share the factor phi(a); their Mills ratios are subtracted instead, without
    cancellation of the leading digits.
    """
    mu = 1.0 / noise_multiplier
    with np.errstate(over="ignore", invalid="ignore"):
        a = mu / 2.0 - epsilon / mu
        b = a - mu
        tail = (
            np.exp(-(a**2) / 2.0) / 2.0 * (erfcx(-np.minimum(a, 0.0) / np.sqrt(2)) - erfcx(-b / np.sqrt(2)))
        )
        body = ndtr(a) - np.exp(np.minimum(epsilon + log_ndtr(b), 0.0))
    return np.asarray(np.clip(np.where(a <= 0.0, tail, body), 0.0, 1.0))


def sampled_profile(stick: Callable[[Floats], Floats], rate: float) -> Profile:
    """The profile of a mechanism on a Poisson sample, from its symmetric divergence without sampling.

    With P' = (1-q)P + qQ and g = e^epsilon, both directions are hockey-sticks of (P, Q) again:
    H_g(P'||P) = q H_{(g-1+q)/q}(Q||P), and H_g(P||P') = (1 - g(1-q)) H_{gq/(1-g(1-q))}(P||Q) while g(1-q) <
    1. `stick` is asked at any real epsilon.
    """
    if rate == 0.0:
        return Profile(add=np.zeros_like, remove=np.zeros_like)
    if rate == 1.0:
        return Profile(add=stick, remove=stick)

    def add(epsilon: Floats) -> Floats:
        # log((e^epsilon - 1 + q)/q), written so that neither a large nor a small epsilon loses digits.
        inner = np.where(
            epsilon < 1.0,
            np.log1p(np.expm1(np.minimum(epsilon, 1.0)) / rate),
            epsilon - np.log(rate) + np.log1p((rate - 1.0) * np.exp(-epsilon)),
        )
        return rate * stick(inner)

    def remove(epsilon: Floats) -> Floats:
        rest = -np.expm1(np.minimum(epsilon + np.log1p(-rate), 0.0))
        with np.errstate(divide="ignore"):
            inner = epsilon + np.log(rate) - np.log(rest)
        return np.where(rest > 0.0, rest * stick(np.where(rest > 0.0, inner, 0.0)), 0.0)

    return Profile(add=add, remove=remove)


@privacy_profile.register
def _(event: Gaussian, accounting: Accounting) -> Profile:
    return sampled_profile(lambda epsilon: gaussian_hockey_stick(epsilon, event.noise_multiplier), 1.0)


@privacy_profile.register
def _(event: PoissonGaussian, accounting: Accounting) -> Profile:
    return sampled_profile(lambda e: gaussian_hockey_stick(e, event.noise_multiplier), event.sample_rate)


@privacy_profile.register
def _(event: PureDP, accounting: Accounting) -> Profile:
    return privacy_profile(PoissonPureDP(sample_rate=1.0, epsilon=event.epsilon), accounting)


@privacy_profile.register
def _(event: PoissonPureDP, accounting: Accounting) -> Profile:
    """Randomised response dominates every eps-private pair: H_t = (e^eps - e^t)/(e^eps + 1), |t| <= eps."""
    bound = event.epsilon

    def stick(t: Floats) -> Floats:
        with np.errstate(over="ignore"):
            inside = -np.expm1(np.minimum(t - bound, 0.0)) / (1.0 + np.exp(-bound))
            return np.where(t < -bound, -np.expm1(np.minimum(t, 0.0)), inside)

    return sampled_profile(stick, event.sample_rate)

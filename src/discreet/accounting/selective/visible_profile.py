"""`visible` accounting as a privacy profile, for a gate on an independent validation batch (per trial).

The exact one is bound 4, the default of this package; the one of bound 2 is here for comparison.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.accounting.profiles import Profile
from discreet.accounting.selective.corners import Corners
from discreet.accounting.selective.gates import Acceptance
from discreet.accounting.selective.likelihood import ROUNDING, Floats, LikelihoodRatio
from discreet.accounting.selective.lines import expected_largest_line

LARGEST_EPSILON = 600.0
"""Profiles are non-increasing: beyond it, the value there is used."""


def exact_profile(law: LikelihoodRatio, corners: Corners) -> Profile:
    """Bound 4: the supremum of the hockey-stick divergence over all acceptance functions, at every epsilon.

    Theorem visible-profile. The best test includes the rejections or it does not. Without them the divergence is
    E[(v b - g a)_+], with them E[(v b - g a)_+ + v (1 - b) - g (1 - a)] (g = e^epsilon; v on the other term when a
    record is removed): each is linear in the acceptance function up to a pointwise maximum, so the supremum is E of
    the maximum over the corners, which are lines in v.
    """
    a, b, rest_a, rest_b = corners.without, corners.with_record, corners.passing_rest, corners.record_rest
    accepted = np.append(a, 0.0), np.append(b, 0.0)
    everything = np.append(rest_a, 1.0), np.append(rest_b, 1.0)

    def add(epsilon: Floats) -> Floats:
        g = np.exp(np.minimum(epsilon, LARGEST_EPSILON))[:, None]
        return _largest(
            *(expected_largest_line(law, -g * x, np.ones_like(g) * y) for x, y in (accepted, everything))
        )

    def remove(epsilon: Floats) -> Floats:
        g = np.exp(np.minimum(epsilon, LARGEST_EPSILON))[:, None]
        return _largest(
            *(expected_largest_line(law, np.ones_like(g) * x, -g * y) for x, y in (accepted, everything))
        )

    return Profile(add=add, remove=remove)


def thinned_profile(law: LikelihoodRatio, acceptance: Acceptance, coin: float) -> Profile:
    """Bound 2 as a profile, for one public coin of probability `coin`, at least the largest acceptance probability.

    Theorem thinning. With the coin's other side nothing is lost; on this side the candidate's divergence is taken at
    the epsilon that the bit, Bernoulli(a / c) or Bernoulli(a' / c), leaves over. The worse of the two pairs of bits is
    taken after the integral, so this need not be the profile of the thinned mechanism, whose bit may depend on the
    candidate. It dominates the trial all the same: at each candidate either pair gives at least what is accepted.
    """
    low, high, rate = acceptance.low, acceptance.high, acceptance.sample_rate
    if not high <= coin <= 1.0:
        raise ValueError(
            f"coin must be between the largest acceptance probability {high:.6g} and 1, not {coin!r}"
        )
    pairs = [(low, low + rate * (high - low)), (high, high - rate * (high - low))]

    def side(price: Callable[[Floats], Floats], epsilon: Floats, *, swap: bool) -> Floats:
        g = np.exp(np.minimum(epsilon, LARGEST_EPSILON))
        worst = np.zeros_like(g)
        for first, second in pairs:
            p, r = (first, second) if swap else (second, first)
            divergence = np.zeros_like(g)
            for above, below in ((p / coin, r / coin), (1.0 - p / coin, 1.0 - r / coin)):
                with np.errstate(divide="ignore"):
                    divergence += above * price(g * below / above) if above > 0.0 else 0.0
            worst = np.maximum(worst, divergence)
        return np.clip(coin * worst * (1.0 + ROUNDING), 0.0, 1.0)

    def removed(g: Floats) -> Floats:
        return g * law.shortfall(1.0 / g)

    return Profile(
        add=lambda epsilon: side(law.excess, epsilon, swap=False),
        remove=lambda epsilon: side(removed, epsilon, swap=True),
    )


def _largest(*bounds: Floats) -> Floats:
    """The larger of several bounds; never below 0, and 1 where one is not a number."""
    largest = np.maximum.reduce(bounds)
    return np.asarray(np.clip(np.where(np.isnan(largest), 1.0, largest), 0.0, 1.0))

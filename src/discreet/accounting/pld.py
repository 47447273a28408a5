"""Certified privacy loss distributions (PLD): a profile made discrete from above, by connecting the dots.

A pair of laws (P, Q) is known up to post-processing by its hockey-stick curve H(g) = sup_S P(S) - g Q(S),
which is convex in g = e^epsilon (Blackwell 1953). Take the curve at the grid epsilons i * interval and join
the points by straight lines: the joined curve lies above, is that of a pair with atoms at the grid points,
and so dominates (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022). Domination survives adaptive
composition (Zhu, Dong, Wang 2022).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.budget import Accounting
from discreet.accounting.events import Event
from discreet.accounting.profiles import certified_profile

Floats = NDArray[np.float64]

_TAIL = 1e-24
"""Divergence beyond which the loss counts as infinite (above) or is lumped into the lowest atom (below)."""

_MAX_ATOMS = 2**17
_LARGEST_LOSS = 1e15


@dataclass(frozen=True, kw_only=True, eq=False)
class LossDistribution:
    """The privacy loss of one release in one direction, on a grid; it dominates the true loss.

    Attributes:
        interval: The distance of neighbouring losses.
        lowest: The index of the first atom, whose loss is `lowest * interval`.
        masses: The probabilities of the atoms, under the law in the first place of the divergence.
        infinity: The probability of an infinite loss.
    """

    interval: float
    lowest: int
    masses: Floats
    infinity: float

    @property
    def losses(self) -> Floats:
        """The loss of every atom."""
        return np.asarray((self.lowest + np.arange(len(self.masses))) * self.interval)


@lru_cache(maxsize=256)
def loss_distributions(
    event: Event, interval: float, accounting: Accounting = Accounting.VISIBLE
) -> tuple[LossDistribution, LossDistribution]:
    """The certified loss distributions of one release when a record is added, and when one is removed.

    Guarantee: add/remove neighbours; never below the true hockey-stick divergence, up to the rounding of
    double precision, a relative 1e-12.
    """
    profile = certified_profile(event, accounting)
    return (
        connect_the_dots(profile.add, profile.remove, interval),
        connect_the_dots(profile.remove, profile.add, interval),
    )


@lru_cache(maxsize=256)
def smallest_interval(event: Event, accounting: Accounting) -> float:
    """The finest interval at which the loss distribution of `event` has at most 2^17 atoms."""
    profile = certified_profile(event, accounting)
    reach = max(_reach(profile.add), _reach(profile.remove))
    return max(2.0 * reach / _MAX_ATOMS, 1e-9)


@lru_cache(maxsize=256)
def typical_loss(event: Event, accounting: Accounting) -> float:
    """The size of a loss: sqrt(2 pi) times the total variation distance; 1/sigma for a small Gaussian."""
    profile = certified_profile(event, accounting)
    zero = np.zeros(1)
    return math.sqrt(2.0 * math.pi) * max(float(profile.add(zero)[0]), float(profile.remove(zero)[0]))


def connect_the_dots(
    up: Callable[[Floats], Floats], down: Callable[[Floats], Floats], interval: float
) -> LossDistribution:
    """The distribution whose curve joins the values of a profile at the grid epsilons.

    `up` is the hockey-stick divergence in this direction, `down` in the other, which gives the values at
    negative epsilon: H(g) = 1 - g + g down(1/g). Only the part g down(1/g) is differenced there: it is small
    where H is nearly 1, so no digits cancel. Masses that rounding makes negative are raised to 0, which only
    adds divergence.
    """
    highest = max(1, math.ceil(_reach(up) / interval))
    lowest = max(1, math.ceil(_reach(down) / interval))
    above = _bounded(up(interval * np.arange(highest + 1, dtype=np.float64)))
    negative = interval * np.arange(-lowest, 0, dtype=np.float64)
    below = np.exp(negative) * _bounded(down(-negative)[::-1])[::-1]
    above[0] = max(above[0], float(_bounded(down(np.zeros(1)))[0]))
    values = np.concatenate([below, above])

    drops = values[:-1] - values[1:]
    shrink, grow = -math.expm1(-interval), math.expm1(interval) if interval < 700.0 else math.inf
    masses = np.empty_like(values)
    masses[1:-1] = drops[:-1] / shrink - drops[1:] / grow
    masses[0] = -drops[0] / grow - values[0]
    masses[-1] = drops[-1] / shrink
    masses[lowest] += 1.0
    return LossDistribution(
        interval=interval, lowest=-lowest, masses=np.maximum(masses, 0.0), infinity=float(values[-1])
    )


def _bounded(divergences: Floats) -> Floats:
    """Divergences as a non-increasing curve in [0, 1]; what is not a number counts as 1."""
    safe = np.clip(np.where(np.isnan(divergences), 1.0, divergences), 0.0, 1.0)
    return np.minimum.accumulate(safe)


def _reach(divergence: Callable[[Floats], Floats]) -> float:
    """An epsilon, within 2 % of the least, at which the divergence has fallen below the tail."""
    candidates = np.geomspace(1e-12, _LARGEST_LOSS, 1400)
    low = _bounded(divergence(candidates)) <= _TAIL
    if not low.any():
        return _LARGEST_LOSS
    return float(candidates[np.argmax(low)])

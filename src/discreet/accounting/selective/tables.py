"""Profiles that are costly to compute, tabulated: joined by chords in e^epsilon, above which no convex curve lies."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from discreet.accounting.profiles import Profile
from discreet.accounting.selective.likelihood import Floats

_PER_SCALE = 12
_DENSE = 5
_GROWTH = 1.04
_NEGLIGIBLE = 1e-25
_LARGEST = 600.0


def knots_for(scale: float, end: float) -> Floats:
    """Epsilons at which to compute: dense on the scale of a typical loss, then growing, up to the largest loss."""
    scale = max(scale, 1e-9)
    end = min(max(end, 2.0 * _DENSE * scale), max(_LARGEST, 2.0 * _DENSE * scale))
    near = np.arange(_DENSE * _PER_SCALE) * (scale / _PER_SCALE)
    steps = int(math.log(end / (_DENSE * scale)) / math.log(_GROWTH)) + 2
    return np.concatenate([near, np.geomspace(_DENSE * scale, end, steps)])


def joined(knots: Floats, values: Floats) -> Callable[[Floats], Floats]:
    """The curve through the values; beyond the last knot its value, because the curve is non-increasing."""
    if len(knots) == 1:
        return lambda epsilon: np.full_like(epsilon, values[0])

    def curve(epsilon: Floats) -> Floats:
        place = np.clip(np.searchsorted(knots, epsilon, side="right") - 1, 0, len(knots) - 2)
        left, right = knots[place], knots[place + 1]
        share = np.clip(
            np.expm1(np.clip(epsilon - left, 0.0, right - left)) / np.expm1(right - left), 0.0, 1.0
        )
        return np.asarray((1.0 - share) * values[place] + share * values[place + 1])

    return curve


def tabulated(profile: Profile) -> Profile:
    """The same profile from a table."""
    return Profile(add=_tabulated(profile.add), remove=_tabulated(profile.remove))


def knots_of(curve: Callable[[Floats], Floats]) -> Floats:
    """Where to tabulate a curve: on the scale of its typical loss, until it has all but vanished."""
    scale = max(math.sqrt(2.0 * math.pi) * float(curve(np.zeros(1))[0]), 1e-9)
    end = 8.0 * scale
    while end < _LARGEST and float(curve(np.array([end]))[0]) > _NEGLIGIBLE:
        end *= 1.5
    return knots_for(scale, end)


def _tabulated(curve: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    knots = knots_of(curve)
    return joined(knots, np.minimum.accumulate(curve(knots)))

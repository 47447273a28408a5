"""What a privacy profile says about guessing: bounds on one probability by another, and on groups of records.

For a mechanism with laws P (without a record) and P' (with it), and any set S, the profile says

    P'(S) <= e^epsilon P(S) + add(epsilon)      and      P(S) <= e^epsilon P'(S) + remove(epsilon)

at every real epsilon; a negative one follows from the other direction, as add(-e) = 1 - e^-e + e^-e remove(e). The
smallest of these lines is the most that one probability can be, given the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.profiles import Profile

Floats = NDArray[np.float64]

_FINEST, _LARGEST, _KNOTS = 1e-3, 60.0, 160
_SMALLEST_SHARE, _STEP = 1e-30, 1.004


@dataclass(frozen=True, kw_only=True, eq=False)
class Lines:
    """Bounds y <= slope * x + offset that hold together; y and x are probabilities of one event under two laws."""

    slopes: Floats
    offsets: Floats

    def most(self, share: Floats) -> Floats:
        """The most that y can be where x is `share`."""
        each = self.slopes[:, None] * np.atleast_1d(share) + self.offsets[:, None]
        return np.asarray(np.minimum(each.min(axis=0), 1.0))

    def mean(self, other: Lines) -> Lines:
        """The bound on the mean of two y, over all pairs of x with a given mean; the slopes have to be the same.

        Adding the two lines of one slope bounds y1 + y2 by slope * (x1 + x2) and the offsets.
        """
        assert np.array_equal(self.slopes, other.slopes)
        return Lines(slopes=self.slopes, offsets=(self.offsets + other.offsets) / 2.0)


def lines(profile: Profile) -> tuple[Lines, Lines]:
    """The bounds of a profile on what happens with a record by what happens without it, and the other way round."""
    above = np.concatenate([[0.0], np.geomspace(_FINEST, _LARGEST, _KNOTS)])
    add, remove = (np.clip(side(above), 0.0, 1.0) for side in (profile.add, profile.remove))
    shrunk = np.exp(-above[1:])
    epsilons = np.concatenate([-above[:0:-1], above])

    def both(up: Floats, down: Floats) -> Lines:
        below = (1.0 - shrunk + shrunk * down[1:])[::-1]
        return Lines(slopes=np.exp(epsilons), offsets=np.concatenate([below, up]))

    return both(add, remove), both(remove, add)


def group_delta(profile: Profile, records: int, epsilon: float) -> float:
    """The delta at `epsilon` for neighbours that differ by so many records, from the profile for one.

    Guarantee: data sets that differ by k records are joined by a chain of k neighbours, and each step of it keeps to
    the line bounds, so the bound is applied k times (Dong, Roth, Su 2022, Theorem 2.14). The result is the largest
    excess over e^epsilon x. Between the places where it is computed it is bounded by the value to the right, as what
    is applied grows with x. It holds for records of any kind, identical ones among them, and every mechanism.
    """
    return _excess(_chained(profile, records), epsilon)


def group_epsilon(profile: Profile, records: int, delta: float) -> float:
    """The smallest epsilon found, to a thousandth, that holds at `delta` for groups of so many records."""
    chained = _chained(profile, records)
    high = 1.0
    while _excess(chained, high) > delta:
        high *= 2.0
        if high > 500.0:
            return math.inf
    low = 0.0
    while high - low > 1e-3 * high:
        middle = (low + high) / 2.0
        if _excess(chained, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _chained(profile: Profile, records: int) -> tuple[Floats, list[Floats]]:
    """Probabilities before any record was added or removed, and the most that each can be after all were."""
    if records < 1:
        raise ValueError(f"records is {records}; a group has at least 1")
    count = math.ceil(-math.log(_SMALLEST_SHARE) / math.log(_STEP))
    places = np.concatenate([[0.0], _STEP ** np.arange(-count, 1, dtype=float)])
    found = []
    for side in lines(profile):
        share = places
        for _ in range(records):
            share = side.most(share)
        found.append(share)
    return places, found


def _excess(chained: tuple[Floats, list[Floats]], epsilon: float) -> float:
    places, found = chained
    slope = math.exp(min(epsilon, 700.0))
    return max(0.0, min(1.0, max(float((share[1:] - slope * places[:-1]).max()) for share in found)))

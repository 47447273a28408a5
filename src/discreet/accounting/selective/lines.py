"""E[max of lines in v], in closed form, with relative precision where one of the lines is 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.accounting.selective.likelihood import ROUNDING, Floats, LikelihoodRatio
from discreet.accounting.selective.powers import Indices


@dataclass(frozen=True)
class _Change:
    """One line giving way to the next, `right` of v = 1 or left of it, at `place`, in the rows where `there`."""

    right: bool
    there: Indices
    place: Floats
    before: Indices
    after: Indices


def expected_largest_line(law: LikelihoodRatio, intercepts: Floats, slopes: Floats) -> Floats:
    """E[max over the last axis of (intercept + slope v)] for each row, rounded up.

    Starts at the line that is highest at v = 1 and walks along the upper envelope to both sides; every change of
    line adds its change of slope times E[(v - t)_+] or E[(t - v)_+]. All these terms are positive, so that nothing
    cancels if the first line is 0.
    """
    start = _highest_at_one(intercepts, slopes)
    a, b = _pick(intercepts, start), _pick(slopes, start)
    total = a + b
    for change in _changes(start, intercepts, slopes):
        price = law.excess if change.right else law.shortfall
        bend = slopes[change.there, change.after] - slopes[change.there, change.before]
        total[change.there] += np.abs(bend) * price(change.place)
    size = np.abs(a) + np.abs(b) + np.abs(total)
    return np.asarray(np.where(np.isnan(total), np.inf, total + ROUNDING * size))


def expected_parts(
    law: LikelihoodRatio, intercepts: Floats, slopes: Floats, parts: list[tuple[Floats, Floats]]
) -> list[Floats]:
    """E of other lines, chosen by which of (intercepts, slopes) is the largest. For searches; not rounded."""
    start = _highest_at_one(intercepts, slopes)
    totals = [_pick(a, start) + _pick(b, start) for a, b in parts]
    for change in _changes(start, intercepts, slopes):
        mass, mean = law.above(change.place)
        if not change.right:
            mass, mean = 1.0 - mass, 1.0 - mean
        for total, (a, b) in zip(totals, parts, strict=True):
            total[change.there] += mass * (a[change.there, change.after] - a[change.there, change.before])
            total[change.there] += mean * (b[change.there, change.after] - b[change.there, change.before])
    return totals


def _highest_at_one(intercepts: Floats, slopes: Floats) -> Indices:
    return np.asarray((intercepts + slopes).argmax(axis=1))


def _pick(table: Floats, column: Indices) -> Floats:
    return np.asarray(np.take_along_axis(table, column[:, None], axis=1)[:, 0])


def _changes(start: Indices, intercepts: Floats, slopes: Floats) -> Iterator[_Change]:
    """The upper envelope's changes of line, walking from v = 1 to the right and to the left."""
    for right in (True, False):
        sign = 1.0 if right else -1.0
        there, current = np.arange(len(start)), start
        for _ in range(intercepts.shape[1] - 1):
            a, b = intercepts[there], slopes[there]
            bend = sign * (b - b[np.arange(len(there)), current, None])
            gap = a[np.arange(len(there)), current, None] - a
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                distance = np.where(bend > 0.0, gap / bend, np.inf)  # the crossing, times the sign
            nearest = distance.min(axis=1)
            # Of several lines that cross at once, the steepest stays on top.
            after = np.where(distance == nearest[:, None], bend, -np.inf).argmax(axis=1)
            found = np.isfinite(nearest)
            if not found.any():
                break
            there, before, current = there[found], current[found], after[found]
            yield _Change(right, there, sign * nearest[found], before, current)

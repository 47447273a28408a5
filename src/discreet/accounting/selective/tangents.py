"""Which tangent to use: a search for the ratio rho = Z'/Z of the worst acceptance function, order by order.

Nothing here is certified or has to be: `hidden` turns any ratio into a valid bound, a good one into an exact bound.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from discreet.accounting.selective.corners import Corners
from discreet.accounting.selective.likelihood import Floats, LikelihoodRatio
from discreet.accounting.selective.powers import Indices, PowerTable, log_moments, power_table

_SPACING = 0.25
_SMOOTH_ENOUGH = 1e-3
_POLISH_ROUNDS = 2
_ROUNDS = 40
_LEVEL_ROUNDS = 12
_LEVEL_SETTLED = 1e-7
_SETTLED = 0.001
"""The bound is flat around the best ratio: its relative error is far below that of log rho."""


def best_tangents(law: LikelihoodRatio, corners: Corners, powers: Floats) -> tuple[Floats, Floats]:
    """A good tangent ratio rho and the level log M that goes with it, for each power.

    Both are mostly smooth in the power: they are searched for at some powers and interpolated between. Where rho turns
    too sharply for that, it is searched for at every power.
    """
    some = landmarks(powers)
    found_ratio, found_level = _search(power_table(law, powers[some]), corners)
    # log M behaves like p (p - 1) for small p.
    curvature = powers * (powers - 1.0)
    log_ratio = between_landmarks(powers, some, found_ratio)
    log_level = between_landmarks(powers, some, found_level / curvature[some]) * curvature
    # At a good ratio the maximiser has that ratio itself; a miss e costs at most about p (p - 1) e^2 / 2 in log M.
    miss, log_level = _miss(power_table(law, powers), corners, log_ratio, log_level)
    rough = curvature * miss**2 / 2.0 > _SMOOTH_ENOUGH * np.abs(log_level)
    rough[some] = False
    if rough.any():
        log_ratio[rough], log_level[rough] = _search(power_table(law, powers[rough]), corners)
    return np.exp(log_ratio), log_level


def _miss(table: PowerTable, corners: Corners, log_rho: Floats, log_guess: Floats) -> tuple[Floats, Floats]:
    """By how much the maximiser's own log ratio differs from log rho, and the level log M that goes with rho."""
    factor, log_unit = scaled_factors(corners, table.powers)
    search = Maximiser(table, factor, corners.without, corners.with_record)
    unit = log_unit + table.log_scale - table.powers * log_rho
    log_level, miss = log_guess - unit, np.zeros_like(log_rho)
    for _ in range(_POLISH_ROUNDS):
        miss, log_level = _step(search, corners, table.powers, log_rho, log_level)
    return miss, log_level + unit


def _step(
    search: Maximiser, corners: Corners, power: Floats, log_rho: Floats, log_level: Floats
) -> tuple[Floats, Floats]:
    """One Newton step for the level log(M rho^P) at this rho: the maximiser's miss, and the next level."""
    tilt = power / np.exp(log_rho)
    moment, without, with_record = search.attained(
        np.exp(-np.clip(log_level, -600.0, 600.0)),
        (power - 1.0)[:, None] * corners.without,
        -tilt[:, None] * corners.with_record,
    )
    tangent = tilt * with_record - (power - 1.0) * without
    with np.errstate(divide="ignore", invalid="ignore"):
        # A maximiser on which the tangent is negative: no level will do at this ratio.
        own = np.where(tangent > 0.0, np.log(np.maximum(moment, 1e-260) / tangent), log_level)
    return np.log(with_record / without) - log_rho, own


def landmarks(powers: Floats) -> Indices:
    """Some of the powers on either side of 0, evenly in log |p - 1/2|: enough to interpolate what is smooth there."""
    chosen: list[int] = []
    for side in (np.flatnonzero(powers > 0.0), np.flatnonzero(powers < 0.0)):
        place = np.log(np.abs(powers[side] - 0.5))
        last = -np.inf
        for index in np.argsort(place):
            if place[index] >= last + _SPACING or place[index] == place.max():
                chosen.append(int(side[index]))
                last = place[index]
    return np.unique(np.array(chosen, dtype=np.intp))


def between_landmarks(powers: Floats, some: Indices, found: Floats) -> Floats:
    """`found` at the landmarks, interpolated in log |p - 1/2| to all powers of the same sign."""
    values = np.empty_like(powers)
    for sign in (1.0, -1.0):
        side, known = sign * powers > 0.0, sign * powers[some] > 0.0
        if side.any():
            at, place = np.log(np.abs(powers[some][known] - 0.5)), np.log(np.abs(powers[side] - 0.5))
            rank = np.argsort(at)
            values[side] = np.interp(place, at[rank], found[known][rank])
    return values


def _search(table: PowerTable, corners: Corners) -> tuple[Floats, Floats]:
    """Log rho and log M for every power of the table.

    At (rho, M) the maximising acceptance function has its own ratio Z'/Z; where that exceeds rho a larger rho is
    better, and the other way round: a bracketed secant search, with a Newton search for the level M rho^P inside.
    """
    power = table.powers
    factor, log_unit = scaled_factors(corners, power)
    search = Maximiser(table, factor, corners.without, corners.with_record)
    spread = corners.without.max() / corners.without.min()
    q = table.grid.law.sample_rate
    low = np.full(len(power), corners.log_ratio.min() + np.log1p(q * (1.0 / spread - 1.0)))
    high = np.full(len(power), corners.log_ratio.max() + np.log1p(q * (spread - 1.0)))
    log_rho, log_level = np.clip(0.0, low, high), np.full(len(power), -np.log(corners.without.max()))
    before, before_miss = np.full(len(power), np.nan), np.full(len(power), np.nan)
    miss = np.zeros(len(power))
    for _ in range(_ROUNDS):
        for _ in range(_LEVEL_ROUNDS):
            miss, own = _step(search, corners, power, log_rho, log_level)
            change, log_level = np.abs(own - log_level).max(), own
            if change < _LEVEL_SETTLED:
                break
        if np.all((np.abs(miss) <= _SETTLED * np.abs(log_rho) + 1e-12) | (high - low <= 1e-9)):
            break
        low, high = np.where(miss >= 0.0, log_rho, low), np.where(miss <= 0.0, log_rho, high)
        with np.errstate(invalid="ignore", divide="ignore"):
            step = log_rho - miss * (log_rho - before) / (miss - before_miss)
        own_ratio = log_rho + miss
        step = np.where((step > low) & (step < high), step, (low + high) / 2.0)
        step = np.where(np.isnan(before) & (own_ratio > low) & (own_ratio < high), own_ratio, step)
        before, before_miss, log_rho = log_rho, miss, step
    return log_rho, log_level + log_unit + table.log_scale - power * log_rho


def scaled_factors(corners: Corners, power: Floats) -> tuple[Floats, Floats]:
    """b^P a^(1-P) = a (b/a)^P at the corners, divided by the largest of them, and that one's logarithm.

    Where the noisy score of an accepted candidate is released too, the factor grows by E[u^P], u the ratio of the
    score's laws (`Corners.score`).
    """
    log_factor = np.log(corners.without) + power[:, None] * corners.log_ratio
    if corners.score:
        log_factor = log_factor + np.stack([log_moments(law, power) for law in corners.score], axis=1)
    log_largest = log_factor.max(axis=1)
    return np.exp(log_factor - log_largest[:, None]), log_largest


class Maximiser:
    """Where max over c of (K_c v^p s + A_c + B_c v) changes hands, and what its maximiser attains.

    A coarse grid finds the changes, interpolation places them, and expectations of the maximiser are sums over the
    few changes of tail expectations. v^p is split into its tangent at v = 1, which has closed forms, and the rest.
    """

    STRIDE = 3

    def __init__(self, table: PowerTable, factor: Floats, without: Floats, with_record: Floats) -> None:
        grid, power = table.grid, table.powers[:, None]
        self._law, self._y = grid.law, grid.y
        self._factor, self._without, self._with_record = factor, without, with_record
        keep = np.unique(np.append(np.arange(0, len(grid.y), self.STRIDE), len(grid.y) - 1))
        self._coarse, self._at = grid.y[keep], grid.nodes[keep]
        self._unit = np.exp(-table.log_scale)
        self._power = table.powers
        with np.errstate(divide="ignore", under="ignore"):
            self._values = np.exp(np.minimum(power * grid.log_nodes[keep] - table.log_scale[:, None], 600.0))
            ends = np.exp(np.minimum(power * grid.log_nodes - table.log_scale[:, None], 600.0))
        mass = grid.left + grid.right
        mean = grid.left * grid.nodes[:-1] + grid.right * grid.nodes[1:]
        cells = grid.left * ends[:, :-1] + grid.right * ends[:, 1:] - table.gaps
        rest = np.maximum(cells - self._unit[:, None] * (mass + power * (mean - mass)), 0.0)
        rest = np.concatenate([rest, table.tail[:, None]], axis=1)
        self._rest_above = np.cumsum(rest[:, ::-1], axis=1)[:, ::-1]

    def attained(self, scale: Floats, constant: Floats, slope: Floats) -> tuple[Floats, Floats, Floats]:
        """(E[K v^p], E[a], E[v b]) of the maximiser, with `scale` multiplying the factors in the comparison."""
        rows = np.arange(len(self._factor))
        values = np.stack(
            [
                (self._factor[:, c] * scale)[:, None] * self._values
                + (constant[:, c, None] + slope[:, c, None] * self._at)
                for c in range(self._factor.shape[1])
            ]
        )
        choice = values.argmax(axis=0)
        row, at = np.nonzero(choice[:, :-1] != choice[:, 1:])
        before, after = choice[row, at], choice[row, at + 1]
        left = values[before, row, at] - values[after, row, at]
        right = values[after, row, at + 1] - values[before, row, at + 1]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.nan_to_num(left / (left + right), nan=0.5)
        y = self._coarse[at] + share * (self._coarse[at + 1] - self._coarse[at])
        q, mu = self._law.sample_rate, self._law.mu
        mass = ndtr(-y)
        mean = (1.0 - q) * mass + q * ndtr(mu - y)
        position = (y - self._y[0]) / (self._y[1] - self._y[0])
        cell = np.minimum(position.astype(np.intp), len(self._y) - 2)
        rest = (position - cell) * self._rest_above[row, cell + 1] + (
            1.0 - position + cell
        ) * self._rest_above[row, cell]
        moment = self._unit[row] * (mass + self._power[row] * (mean - mass)) + rest

        first = choice[:, 0]
        a, b = self._without, self._with_record
        whole = self._unit + self._rest_above[:, 0]
        jump = self._factor[row, after] - self._factor[row, before]
        return (
            self._factor[rows, first] * whole + np.bincount(row, jump * moment, minlength=len(rows)),
            a[first] + np.bincount(row, (a[after] - a[before]) * mass, minlength=len(rows)),
            b[first] + np.bincount(row, (b[after] - b[before]) * mean, minlength=len(rows)),
        )

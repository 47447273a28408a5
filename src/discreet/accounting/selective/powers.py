"""Upper bounds on E[max over c of (K_c v^p + A_c + B_c v)], for many powers p at once.

The maximum of such functions is convex in v (K_c >= 0 and p > 1 or p < 0), so the grid's mean-preserving spread
bounds it. The spread's excess on v^p itself is known exactly per cell; because the maximum minus K_min v^p is still
convex, K_min times that excess may be taken off again, with K_min the smallest factor that matters in the cell.
Cells in which the maximum changes hands are subdivided. What remains is a relative 1e-6 of the divergence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.selective.likelihood import (
    LARGEST_MU,
    ROUNDING,
    STEP,
    Floats,
    LikelihoodRatio,
    RatioGrid,
    log_tail_moments,
    ratio_grid,
)

Indices = NDArray[np.intp]

_BLOCK = 64
_SMOOTH = 4.0
"""Largest |p| mu times cell width at which the Gauss points of a cell integrate v^p to a relative 1e-11."""
_VERY_SMOOTH = 2.0
"""And to rounding."""
_TRAPEZOID_MU = 5.0
_TRAPEZOID_TAIL = 12.0
_TRAPEZOID_ROUNDING = 1e-12
_PEAK_TO_MEAN = 16.0
"""On a cell the chord's gap is concave, so its peak is below this multiple of its mean."""


@dataclass(frozen=True)
class PowerTable:
    """E[v^p] and its parts on the grid for a column of powers; everything is divided by exp(log_scale).

    Attributes:
        powers: p, shape (rows,); each above 1 or below 0.
        log_scale: an upper bound on log E[v^p].
        at_nodes: weight times v^p at the nodes, shape (rows, nodes).
        gaps: what the spread adds to E[v^p] on each cell (a lower bound), shape (rows, cells).
        tail: an upper bound on E[v^p] outside the grid.
    """

    grid: RatioGrid
    powers: Floats
    log_scale: Floats
    at_nodes: Floats
    gaps: Floats
    tail: Floats


@dataclass(frozen=True)
class Maximum:
    """The bound, and the part of it that the powers contribute (the slope of the bound in their common factor)."""

    bound: Floats
    moment: Floats


def power_table(law: LikelihoodRatio, powers: Floats) -> PowerTable:
    """The table of a law for these powers (cached)."""
    return _power_table(law, powers.tobytes())


@lru_cache(maxsize=32)
def _power_table(law: LikelihoodRatio, packed: bytes) -> PowerTable:
    powers = np.frombuffer(packed, dtype=np.float64)
    grid = ratio_grid(law)
    with np.errstate(divide="ignore", under="ignore", over="ignore"):
        log_tail = log_tail_moments(law, powers, grid.y[-1])
        log_terms = powers[:, None] * grid.log_nodes + np.log(grid.weights)
        scale = np.maximum(log_terms.max(axis=1), log_tail)
        at_nodes = np.exp(log_terms - scale[:, None])
        tail = np.exp(log_tail - scale)
        gaps = _spread_gaps(grid, powers, scale)
        inside = at_nodes.sum(axis=1) - gaps.sum(axis=1)
        tail = np.minimum(tail, _rest_of_moment(law, powers, scale, inside))
        moment = inside + tail
        shift = np.log(moment) + ROUNDING * (1.0 + np.abs(scale))
        factor = np.exp(-shift)[:, None]
    return PowerTable(
        grid,
        powers,
        scale + shift,
        at_nodes * factor,
        gaps * factor,
        (tail * factor[:, 0]) * (1.0 + ROUNDING),
    )


def log_moments(law: LikelihoodRatio, powers: Floats) -> Floats:
    """An upper bound on log E[v^p] for each power; infinite where there is so little noise that floats do not do."""
    if law.sample_rate == 0.0:
        return np.zeros_like(powers)
    if law.sample_rate == 1.0:
        return powers * (powers - 1.0) * law.mu**2 / 2.0
    return power_table(law, powers).log_scale if law.mu <= LARGEST_MU else np.full_like(powers, np.inf)


def _spread_gaps(grid: RatioGrid, powers: Floats, scale: Floats) -> Floats:
    """Chord minus integral of v^p on each cell, rounded down; 0 where the quadrature is not sure."""
    width = (grid.y[1] - grid.y[0]) * grid.law.mu
    gaps = np.zeros((len(powers), len(grid.left)))
    sure = (np.abs(powers) * width <= _SMOOTH) & (width <= 1.0)
    if sure.any():
        p, s = powers[sure, None], scale[sure, None]
        ends = np.exp(p * grid.log_nodes - s)
        chord = grid.left * ends[:, :-1] + grid.right * ends[:, 1:]
        flat = np.exp(p * grid.inner_log.ravel() - s).reshape(-1, *grid.inner_log.shape)
        integral = np.einsum("rck,ck->rc", flat, grid.inner_weights)
        allowance = np.where(np.abs(p) * width <= _VERY_SMOOTH, ROUNDING, 100.0 * ROUNDING)
        gaps[sure] = np.maximum(chord - integral - allowance * chord, 0.0)
    return gaps


def _rest_of_moment(law: LikelihoodRatio, powers: Floats, scale: Floats, inside: Floats) -> Floats:
    """E[v^p] less its part on the grid, rounded up; infinite where the trapezoidal rule is not sure.

    The integrand is analytic in the strip |Im y| < pi sigma (v has no zero there), so for steps that are small against
    that the rule is exact to rounding. It serves while p mu is moderate, so that few points reach the far peak.
    """
    rest = np.full_like(powers, np.inf)
    sure = np.abs(powers) * law.mu * STEP <= _SMOOTH
    if law.mu > _TRAPEZOID_MU or not sure.any():
        return rest
    p, s = powers[sure, None], scale[sure, None]
    reach = np.abs(p).max() * law.mu + _TRAPEZOID_TAIL
    y = np.arange(-reach if (p < 0.0).any() else -_TRAPEZOID_TAIL, reach, STEP)
    terms = np.exp(p * law.log_at(y) - y**2 / 2.0 - s)
    whole = terms.sum(axis=1) * (STEP / np.sqrt(2.0 * np.pi))
    rest[sure] = np.maximum(whole - inside[sure], 0.0) + _TRAPEZOID_ROUNDING * whole
    return rest


def expected_maximum(
    table: PowerTable, rows: Indices, factor: Floats, constant: Floats, slope: Floats
) -> Maximum:
    """An upper bound on E[max over c of (factor_c v^p / exp(log_scale) + constant_c + slope_c v)].

    `factor` (not negative), `constant` and `slope` have the shape (len(rows), choices). Worked off in blocks that
    stay in the processor's cache.
    """
    parts = [
        _expected_maximum(
            table, rows[i : i + _BLOCK], *(x[i : i + _BLOCK] for x in (factor, constant, slope))
        )
        for i in range(0, len(rows), _BLOCK)
    ]
    return Maximum(
        np.concatenate([part.bound for part in parts]), np.concatenate([part.moment for part in parts])
    )


def _expected_maximum(
    table: PowerTable, rows: Indices, factor: Floats, constant: Floats, slope: Floats
) -> Maximum:
    grid = table.grid
    powers = table.at_nodes[rows]
    weights, means = grid.weights, grid.weights * grid.nodes
    best = held = second = np.empty(0)
    for c in range(factor.shape[1]):
        value = factor[:, c, None] * powers
        value += constant[:, c, None] * weights
        value += slope[:, c, None] * means
        if c == 0:
            best, second = value, np.full_like(value, -np.inf)
            held = np.repeat(factor[:, :1], value.shape[1], axis=1)
            continue
        np.maximum(second, np.minimum(best, value), out=second)
        np.copyto(held, factor[:, c, None], where=value > best)
        np.maximum(best, value, out=best)
    largest, smallest = factor.max(axis=1), factor.min(axis=1)
    gaps = table.gaps[rows]
    bound = best.sum(axis=1)
    settled = _settled_cells(best, second, held, smallest, gaps, grid)
    bound -= (np.where(settled, held[:, :-1], 0.0) * gaps).sum(axis=1)
    bound += _subdivided(table, rows, factor, constant, slope, best, ~settled)
    bound += (
        largest * table.tail[rows]
        + constant.max(axis=1) * grid.tail_mass
        + slope.max(axis=1) * grid.tail_mean
    )
    # What was added up: E[v^p] is 1 in this scale, and so is E[v].
    bound += ROUNDING * (largest + np.abs(constant).max(axis=1) + np.abs(slope).max(axis=1))
    moment = np.einsum("rj,rj->r", held, powers) + largest * table.tail[rows]
    return Maximum(np.where(np.isnan(bound), np.inf, bound), moment)


def _settled_cells(
    best: Floats, second: Floats, held: Floats, smallest: Floats, gaps: Floats, grid: RatioGrid
) -> NDArray[np.bool_]:
    """Cells on which the maximum surely has the factor that it has at both ends.

    Another function can exceed it inside only if its factor is smaller (the difference is then concave), and by at
    most the runner-up's smaller deficit plus the difference of the factors times the chord's largest gap.
    """
    here = held[:, :-1]
    deficit = (second - best) / grid.weights
    closest = np.maximum(deficit[:, :-1], deficit[:, 1:])
    lead = (here - smallest[:, None]) * gaps
    reach = closest + lead * (_PEAK_TO_MEAN / (grid.left + grid.right))
    return np.asarray((here == held[:, 1:]) & (reach <= 0.0))


def _subdivided(
    table: PowerTable,
    rows: Indices,
    factor: Floats,
    constant: Floats,
    slope: Floats,
    best: Floats,
    cells: NDArray[np.bool_],
) -> Floats:
    """What the bound changes when these cells are spread on their subdivision instead."""
    grid = table.grid
    row, cell = np.nonzero(cells & (grid.left + grid.right > 0.0))
    fine_log = grid.fine_log[cell]
    power = np.exp(table.powers[rows[row], None] * fine_log - table.log_scale[rows[row], None])
    at = np.exp(fine_log)
    top = np.full(power.shape, -np.inf)
    for c in range(factor.shape[1]):
        top = np.maximum(
            top, factor[row, c, None] * power + constant[row, c, None] + slope[row, c, None] * at
        )
    fine = (grid.fine_left[cell] * top[:, :-1] + grid.fine_right[cell] * top[:, 1:]).sum(axis=1)
    coarse = (
        grid.left[cell] * best[row, cell] / grid.weights[cell]
        + grid.right[cell] * best[row, cell + 1] / grid.weights[cell + 1]
    )
    change = fine - coarse
    gained = np.where(np.isfinite(change), np.minimum(change, 0.0), 0.0)
    return np.asarray(np.bincount(row, gained, minlength=len(rows)), dtype=np.float64)

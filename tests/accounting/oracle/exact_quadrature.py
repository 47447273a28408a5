"""One-dimensional integrals of spiky densities with jumps, in log space.

Composite Gauss-Legendre on panels that are refined at the places where an integrand may jump or kink. Everything
is returned as a logarithm, and a NaN anywhere is an error: the oracle must never lose a term silently.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_GRADING = 2.0 ** -np.arange(0, 13)


@lru_cache(maxsize=4)
def _rule(points: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights


def logsumexp(values: Array, axis: int | None = None) -> Array:
    """log of the sum of exponentials; minus infinity is allowed, NaN and plus infinity are errors."""
    if np.isnan(values).any() or np.isposinf(values).any():
        raise FloatingPointError("the oracle met a NaN or an overflow")
    top = np.max(values, axis=axis, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(values - safe), axis=axis, keepdims=True)) + safe
    return np.asarray(np.squeeze(total) if axis is None else np.squeeze(total, axis=axis))


class Grid:
    """Nodes and log-weights of a composite rule; every break is a panel edge with graded panels around it."""

    def __init__(self, low: float, high: float, breaks: Array, step: float, points: int = 16) -> None:
        inner = np.asarray(breaks, dtype=float)
        inner = inner[(inner > low) & (inner < high)]
        uniform = np.linspace(low, high, max(2, int(np.ceil((high - low) / step)) + 1))
        graded = (inner[:, None] + step * np.concatenate([_GRADING, -_GRADING])[None, :]).ravel()
        edges = np.unique(np.concatenate([uniform, inner, graded[(graded > low) & (graded < high)]]))
        edges = edges[np.concatenate([[True], np.diff(edges) > 1e-14])]
        nodes, weights = _rule(points)
        half = np.diff(edges) / 2
        self.edges = edges
        self.nodes: Array = ((edges[1:] + edges[:-1]) / 2)[:, None] + half[:, None] * nodes[None, :]
        self.log_weights: Array = np.log(half)[:, None] + np.log(weights)[None, :]

    def log_integral(self, log_values: Array) -> float:
        """Log of the integral of exp(log_values), given at `nodes`."""
        return float(logsumexp(log_values + self.log_weights))


def roots_between(function: Callable[[Array], Array], grid: Grid) -> Array:
    """Zeros of a piecewise smooth function, one for each sign change between neighbouring nodes."""
    at = grid.nodes.ravel()
    values = function(at)
    where = np.nonzero(np.sign(values[1:]) * np.sign(values[:-1]) < 0)[0]
    low, high = at[where], at[where + 1]
    low_sign = np.sign(values[where])
    for _ in range(60):
        middle = (low + high) / 2
        same = np.sign(function(middle)) == low_sign
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return (low + high) / 2

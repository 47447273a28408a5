"""The likelihood ratio of one Poisson-sampled Gaussian release, and certified expectations of it.

Let P be the law of the noisy sum without the differing record and P' with it. In the worst case the ratio is
v = dP'/dP = 1 - q + q L with L = exp(mu y - mu^2/2), y ~ N(0, 1) under P, mu = 1/sigma; a record that is clipped to
less, other coordinates and the random rest of the batch are covered by convexity. Every bound of this package is
an expectation E[f(v)] of a *convex* f, or is built from such expectations. Two tools follow:

- piecewise linear f: E[(v - t)_+] and E[(t - v)_+] have closed forms that keep their digits far in the tail;
- f with powers v^p: the law of v is replaced by a mean-preserving spread on a grid, which can only raise E[f(v)].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from discreet.accounting.events import checked_number
from discreet.accounting.profiles import gaussian_hockey_stick

Floats = NDArray[np.float64]

TAIL = 9.0
"""The grid covers the normal variable from -TAIL to mu + TAIL; what lies outside (1e-19) is bounded apart."""
STEP = 0.1
GAUSS_POINTS = 8
SUBDIVISION = 16
TAIL_CELLS = 48
_BISECTIONS = 40
LARGEST_MU = 25.0
"""With less noise than 1/25 the grid would leave the range of floats; closed-form bounds serve there."""

ROUNDING = 1e-13
"""Relative allowance for rounding, added wherever a sum of floats becomes a certificate."""


@dataclass(frozen=True)
class LikelihoodRatio:
    """The law of v = 1 - q + q L under P; `sample_rate` is q and `noise_multiplier` is sigma."""

    sample_rate: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        checked_number("sample_rate", self.sample_rate, low=0.0, high=1.0)
        checked_number("noise_multiplier", self.noise_multiplier, low=0.0, open_low=True)

    @property
    def mu(self) -> float:
        """The distance of the two Gaussians in standard deviations."""
        return 1.0 / self.noise_multiplier

    def log_at(self, y: Floats) -> Floats:
        """The logarithm of v as a function of the normal variable."""
        q, exponent = self.sample_rate, self.mu * y - self.mu**2 / 2.0
        with np.errstate(divide="ignore", over="ignore"):
            near = np.log1p(q * np.expm1(np.minimum(exponent, 1.0)))
            far = np.logaddexp(np.log1p(-q), np.log(q) + exponent)
        return np.where(exponent < 1.0, near, far) if q < 1.0 else exponent

    def excess(self, t: Floats) -> Floats:
        """E[(v - t)_+], the price of a call on the ratio."""
        q = self.sample_rate
        if q == 0.0:
            return np.maximum(1.0 - t, 0.0)
        strike = self._log_strike(t)
        return np.where(
            np.isfinite(strike), q * gaussian_hockey_stick(strike, self.noise_multiplier), 1.0 - t
        )

    def shortfall(self, t: Floats) -> Floats:
        """E[(t - v)_+], the price of a put on the ratio."""
        q = self.sample_rate
        if q == 0.0:
            return np.maximum(t - 1.0, 0.0)
        strike = self._log_strike(t)
        # E[(s - L)_+] = s H_{1/s}(P||Q), and the two Gaussians are symmetric.
        with np.errstate(over="ignore", invalid="ignore"):
            price = q * np.exp(strike) * gaussian_hockey_stick(-strike, self.noise_multiplier)
        return np.where(np.isfinite(strike), price, 0.0)

    def above(self, t: Floats) -> tuple[Floats, Floats]:
        """P(v > t) and E[v; v > t], the latter being the probability under P'."""
        if self.sample_rate == 0.0:
            mass = np.where(t < 1.0, 1.0, 0.0)
            return mass, mass
        y = self._log_strike(t) / self.mu + self.mu / 2.0
        mass = ndtr(-y)
        return mass, (1.0 - self.sample_rate) * mass + self.sample_rate * ndtr(self.mu - y)

    def mean_range(self, spread: float) -> tuple[float, float]:
        """The smallest and largest mean of v after reweighting P by any b with values in [1, spread].

        Theorem: E[b v] <= s E[b] for all such b if and only if (spread - 1) E[(v - s)_+] + 1 - s <= 0 (the worst b is
        bang-bang); likewise from below. The roots are rounded outwards.
        """
        if self.sample_rate == 0.0 or spread <= 1.0:
            return 1.0, 1.0
        if not np.isfinite(spread):
            return 1.0 - self.sample_rate, np.inf
        low, high = 1.0 - self.sample_rate * (1.0 - 1.0 / spread), 1.0 + self.sample_rate * (spread - 1.0)
        smallest, largest = np.array([low, 1.0]), np.array([1.0, high])
        for _ in range(_BISECTIONS):
            middle = np.array([smallest.mean(), largest.mean()])
            falls_short = 1.0 - middle[0] >= (spread - 1.0) * self.shortfall(middle[:1])[0]
            exceeds = (spread - 1.0) * self.excess(middle[1:])[0] <= middle[1] - 1.0
            smallest[0 if falls_short else 1] = middle[0]
            largest[1 if exceeds else 0] = middle[1]
        return float(smallest[0] * (1.0 - ROUNDING)), float(largest[1] * (1.0 + ROUNDING))

    def _log_strike(self, t: Floats) -> Floats:
        """Log s where v > t means L > s; -inf where every v exceeds t."""
        q = self.sample_rate
        over = t - (1.0 - q)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Near 1 the distance from 1 has the digits, near 1 - q (0, for full batches) that from there.
            near = np.log1p(np.maximum((t - 1.0) / q, -1.0))
            return np.asarray(np.where(over > 0.0, np.where(over < q / 2.0, np.log(over / q), near), -np.inf))


@dataclass(frozen=True)
class RatioGrid:
    """A mean-preserving spread of v on a grid, with what is needed to take most of the spread back.

    Theorem: for convex f, E[f(v)] <= sum of weights * f(nodes) + (the tails' part), because on every cell f lies
    below its chord in v and the weights keep each cell's mass and mean.

    Attributes:
        nodes: the values of v at the cell boundaries.
        weights: their masses.
        left, right: each cell's share in the weights of its two ends.
        inner_log, inner_weights: Gauss-Legendre points of each cell (log v, and mass), shape (cells, points).
        fine_log, fine_left, fine_right: log v, and shares as above, on a subdivision of each cell.
        tail_mass, tail_mean: mass of, and E[v] over, what lies outside the grid.
    """

    law: LikelihoodRatio
    y: Floats
    nodes: Floats
    log_nodes: Floats
    weights: Floats
    left: Floats
    right: Floats
    inner_log: Floats
    inner_weights: Floats
    fine_log: Floats
    fine_left: Floats
    fine_right: Floats
    tail_mass: float
    tail_mean: float


@lru_cache(maxsize=64)
def ratio_grid(law: LikelihoodRatio) -> RatioGrid:
    """The grid of a law, made once."""
    mu = law.mu
    span = 2.0 * TAIL + mu
    cells = int(np.ceil(span / STEP))
    y = np.linspace(-TAIL, mu + TAIL, cells + 1)
    width = y[1] - y[0]
    points, gauss = np.polynomial.legendre.leggauss(GAUSS_POINTS)
    inner = y[:-1, None] + (points + 1.0) * width / 2.0
    inner_weights = gauss * (width / 2.0) * np.exp(-(inner**2) / 2.0) / np.sqrt(2.0 * np.pi)
    left, right = _shares(law, y)
    fine = y[:-1, None] + np.linspace(0.0, width, SUBDIVISION + 1)
    fine_left, fine_right = _shares(law, np.append(fine[:, :-1], y[-1]))
    weights = np.zeros(cells + 1)
    weights[:-1] += left
    weights[1:] += right
    log_nodes = law.log_at(y)
    q, (low, high) = law.sample_rate, (y[0], y[-1])
    tail_mass = float(ndtr(low) + ndtr(-high))
    tail_mean = float((1.0 - q) * tail_mass + q * (ndtr(low - mu) + ndtr(mu - high)))
    return RatioGrid(
        law=law,
        y=y,
        nodes=np.exp(log_nodes),
        log_nodes=log_nodes,
        weights=weights,
        left=left,
        right=right,
        inner_log=law.log_at(inner),
        inner_weights=inner_weights,
        fine_log=law.log_at(fine),
        fine_left=fine_left.reshape(cells, SUBDIVISION),
        fine_right=fine_right.reshape(cells, SUBDIVISION),
        tail_mass=tail_mass,
        tail_mean=tail_mean,
    )


def _shares(law: LikelihoodRatio, y: Floats) -> tuple[Floats, Floats]:
    """How the mass of each cell [y_j, y_j+1] is split between its ends so that its mean of v is kept.

    The right end gets E[L - L_left] / (L_right - L_left) of the mass; q drops out.
    """
    mu, low, width = law.mu, y[:-1], np.diff(y)
    mass = ndtr_between(low, y[1:])
    if mu * width.max() < 1.0:
        points, gauss = np.polynomial.legendre.leggauss(GAUSS_POINTS)
        offset = (points + 1.0) * width[:, None] / 2.0
        density = (
            gauss * np.exp(-((low[:, None] + offset) ** 2) / 2.0) * (width[:, None] / np.sqrt(8.0 * np.pi))
        )
        right = (density * np.expm1(mu * offset)).sum(axis=1) / np.expm1(mu * width)
    else:
        tilted = ndtr_between(low - mu, y[1:] - mu) * np.exp(mu**2 / 2.0 - mu * low)
        right = (tilted - mass) / np.expm1(mu * width)
    return mass - right, right


def mean_preserving_spread(
    law: LikelihoodRatio, step: float, tail: float
) -> tuple[Floats, Floats, float, float]:
    """Nodes and weights of a spread of v on [-tail, mu + tail], and mass and mean of v outside of that."""
    end = law.mu + tail
    y = np.linspace(-tail, end, int(np.ceil((end + tail) / step)) + 1)
    left, right = _shares(law, y)
    weights = np.zeros(len(y))
    weights[:-1] += left
    weights[1:] += right
    q, (low, high) = law.sample_rate, (y[0], y[-1])
    tail_mass = float(ndtr(low) + ndtr(-high))
    tail_mean = float((1.0 - q) * tail_mass + q * (ndtr(low - law.mu) + ndtr(law.mu - high)))
    return np.exp(law.log_at(y)), weights, tail_mass, tail_mean


def ndtr_between(low: Floats, high: Floats) -> Floats:
    """Phi(high) - Phi(low) for low <= high, taken in the tail where it keeps its digits."""
    flip = low > 0.0
    return np.asarray(ndtr(np.where(flip, -low, high)) - ndtr(np.where(flip, -high, low)))


def log_ndtr_between(low: Floats, high: Floats) -> Floats:
    """The logarithm of Phi(high) - Phi(low)."""
    flip = low + high > 0.0
    upper, lower = np.where(flip, -low, high), np.where(flip, -high, low)
    log_upper = log_ndtr(upper)
    with np.errstate(divide="ignore"):
        # An interval too short for the difference counts as its whole half-line: larger, never smaller.
        gap = log_ndtr(lower) - log_upper
        return np.asarray(log_upper + np.log(np.where(gap < 0.0, -np.expm1(np.minimum(gap, 0.0)), 1.0)))


def log_tail_moments(law: LikelihoodRatio, powers: Floats, high: float) -> Floats:
    """An upper bound on log E[v^p; outside the grid], for each power.

    log v is convex in y. For p > 0 it lies below its chords, for p < 0 above its tangents; either way v^p is below
    an exponential on each cell, whose normal integral is known. A power above 1 needs cells up to p mu, a negative
    one down to p mu; the other tail is bounded by the value at its end.
    """
    mu, up = law.mu, powers > 0.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        reach = np.abs(powers) * mu + 2.0 * TAIL
        fractions = np.linspace(0.0, 1.0, TAIL_CELLS + 1)
        start, stop = np.where(up, high, TAIL), np.where(up, np.maximum(high, TAIL) + reach, TAIL + reach)
        edges = start[:, None] + (stop - start)[:, None] * fractions
        # Cells run outwards: [edges_k, edges_{k+1}] on the upper side, mirrored on the lower one.
        sign = np.where(up, 1.0, -1.0)[:, None]
        near, far = sign * edges[:, :-1], sign * edges[:, 1:]
        log_near, log_far = law.log_at(near), law.log_at(far)
        middle = (near + far) / 2.0
        log_middle = law.log_at(middle)
        share = np.exp(np.minimum(np.log(law.sample_rate) + mu * middle - mu**2 / 2.0 - log_middle, 0.0))
        slope = np.where(up[:, None], (log_far - log_near) / (far - near), mu * share)
        value = np.where(up[:, None], log_near, log_middle)
        at = np.where(up[:, None], near, middle)
        # The last cell is open; v grows at most like exp(mu y).
        slope[:, -1] = np.where(up, mu, slope[:, -1])
        outer = far.copy()
        outer[:, -1] = np.where(up, np.inf, -np.inf)
        tilt = powers[:, None] * slope
        constant = powers[:, None] * (value - slope * at) + tilt**2 / 2.0
        low_edge, high_edge = np.minimum(near, outer), np.maximum(near, outer)
        cells = constant + log_ndtr_between(low_edge - tilt, high_edge - tilt)
        # The quiet side: v^p is largest at the grid's end.
        quiet_end = np.where(up, -TAIL, high)
        quiet = powers * law.log_at(quiet_end) + log_ndtr(-np.abs(quiet_end))
        total = np.logaddexp(np.logaddexp.reduce(cells, axis=1), quiet)
    return np.where(np.isnan(total), np.inf, total)

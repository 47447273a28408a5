"""Composition of loss distributions by one Fourier transform, with every numerical error on the safe side.

The sum of independent losses is computed under an exponential tilt: each atom at loss l is weighted by
e^(theta l), which moves the bulk to where the answer is decided. For any theta > 0, with K(theta) the log
of the summed weights,

    delta(epsilon) = infinity
        + e^(K - theta epsilon) sum over l > epsilon of (1 - e^(epsilon-l)) e^(-theta (l-epsilon)) p_theta(l).

The factor in front is Chernoff's bound on delta itself. Rounding and the wrap-around of the transform are
bounded relative to it and added, so they stay small for every delta, where an untilted transform loses all
below 1e-10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from discreet.accounting.pld import LossDistribution

Floats = NDArray[np.float64]

_WRAP = 1e-13
"""Tilted probability that may lie outside the window of the transform, on either side."""

_NEGLIGIBLE = 70.0
"""Frequencies whose transform is below e^-70 are dropped: together they move no probability by 1e-24."""

_COARSE_ATOMS = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class Ensemble:
    """What is composed: public mixtures of a few loss distributions, each taken a number of times.

    Attributes:
        parts: The distinct loss distributions, on one grid.
        index: For each mixture (row) the parts that it mixes.
        weight: The weights, of the same shape.
        count: How often each mixture is taken.
    """

    parts: Sequence[LossDistribution]
    index: NDArray[np.int64]
    weight: Floats
    count: Floats

    def infinity(self) -> float:
        """The probability that any of the losses is infinite."""
        each = (self.weight * np.array([part.infinity for part in self.parts])[self.index]).sum(axis=1)
        if (each >= 1.0).any():
            return 1.0
        return float(-np.expm1((self.count * np.log1p(-each)).sum()))

    def combine(self, log_moments: Floats) -> Floats:
        """Sum over the mixtures of log E[...], from the parts' logarithms in the last axis."""
        with np.errstate(divide="ignore"):
            log_weight = np.log(self.weight)
        top = log_moments[..., self.index] + log_weight
        peak = top.max(axis=-1)
        inner = peak + np.log(np.exp(top - peak[..., None]).sum(axis=-1))
        return np.asarray((inner * self.count).sum(axis=-1))

    def log_moment(self, theta: float) -> float:
        """K(theta): the log of E[e^(theta loss)] of the composition, infinite losses left out."""
        return float(self.combine(np.array([_log_moment(part, theta) for part in self.parts])))


def _log_moment(part: LossDistribution, theta: float) -> float:
    with np.errstate(divide="ignore"):
        return _log_sum(np.log(part.masses) + theta * part.losses)


@dataclass(frozen=True, kw_only=True, eq=False)
class ComposedLoss:
    """The composition under a tilt: sharp near the question it was chosen for, a valid bound everywhere."""

    losses: Floats
    tilted: Floats
    theta: float
    log_moment: float
    error: float
    infinity: float

    def delta(self, epsilon: float) -> float:
        """An upper bound on the hockey-stick divergence at `epsilon`."""
        start = int(np.searchsorted(self.losses, epsilon, side="right"))
        gap = self.losses[start:] - epsilon
        inside = float((-np.expm1(-gap) * np.exp(-self.theta * gap)) @ self.tilted[start:])
        exponent = min(self.log_moment - self.theta * epsilon, 700.0)
        bound = self.infinity + math.exp(exponent) * (inside + self.error)
        return min(1.0, bound) if not math.isnan(bound) else 1.0

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon, to nine digits, at which the bound is at most `delta`; may be infinite."""
        if self.infinity >= delta:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0
        step = 4.0 / self.theta
        high = max((self.log_moment - math.log(delta)) / self.theta, step)  # Chernoff's bound
        while self.delta(high) > delta:
            high, step = high + step, 2.0 * step
            if high > 1e300:
                return math.inf
        low, step = max(0.0, high - step), 2.0 * step
        while self.delta(low) <= delta:
            low, high, step = max(0.0, low - step), low, 2.0 * step
        return self._solve(low, high, math.log(delta))

    def _solve(self, low: float, high: float, log_delta: float) -> float:
        """False position (Illinois) on the logarithm; returns an end at which the bound was seen to hold."""

        def excess(epsilon: float) -> float:
            return math.log(max(self.delta(epsilon), 1e-320)) - log_delta

        at_low, at_high = excess(low), excess(high)
        for _ in range(100):
            if high - low <= 1e-9 * high:
                break
            guess = high - at_high * (high - low) / (at_high - at_low)
            # A little to the right, so that the bracket also shrinks from above.
            guess = min(max(guess + 0.2e-9 * high, low + 0.01 * (high - low)), high - 0.4e-9 * high)
            at_guess = excess(guess)
            if at_guess <= 0.0:
                high, at_high, at_low = guess, at_guess, at_low / 2.0
            else:
                low, at_low, at_high = guess, at_guess, at_high / 2.0
        return high


def compose(
    ensemble: Ensemble, *, delta: float | None = None, epsilon: float | None = None, limit: int
) -> ComposedLoss | None:
    """The composition of an ensemble, tilted for the question "epsilon at `delta`" or "delta at `epsilon`".

    Nothing is computed, and None returned, when the transform would need more than `limit` points.
    """
    interval = ensemble.parts[0].interval
    infinity = ensemble.infinity()
    if infinity >= 1.0:
        nothing = np.zeros(1)
        return ComposedLoss(
            losses=nothing, tilted=nothing, theta=1.0, log_moment=0.0, error=0.0, infinity=1.0
        )
    search = _Search.of(ensemble)
    scale = search.scale()
    theta = search.tilt(scale, delta, epsilon)
    log_moment = ensemble.log_moment(theta)
    bottom, top = _window(ensemble, theta, log_moment, search.window_steps(theta, scale))
    if top - bottom >= limit:
        return None
    size = fft.next_fast_len(top - bottom + 1, real=True)
    tilted, rounding = _transform(ensemble, theta, bottom, size)
    # Rounding moves every atom by at most `rounding`; sum over i of (1-e^-ih) e^(-theta ih) is at most
    # 1/(theta h).
    error = rounding * min(size, 1.0 / (theta * interval)) + 2.0 * _WRAP
    return ComposedLoss(
        losses=(bottom + np.arange(size)) * interval,
        tilted=tilted,
        theta=theta,
        log_moment=log_moment,
        error=error,
        infinity=infinity,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Search:
    """Cheap copies of the log moments, to choose parameters by. The bounds themselves use the exact ones."""

    ensemble: Ensemble
    coarse: Sequence[tuple[Floats, Floats]]

    @classmethod
    def of(cls, ensemble: Ensemble) -> _Search:
        return cls(ensemble=ensemble, coarse=[_coarse(part) for part in ensemble.parts])

    def log_moment(self, theta: float) -> float:
        return float(
            self.ensemble.combine(np.array([_log_sum(log + theta * loss) for loss, log in self.coarse]))
        )

    def scale(self) -> float:
        """The root mean square of the composed loss around its mean, without a tilt."""
        means, squares = (
            np.array([np.exp(log) @ loss**power for loss, log in self.coarse])[self.ensemble.index]
            for power in (1, 2)
        )
        weight = self.ensemble.weight
        variance = (weight * squares).sum(axis=1) - (weight * means).sum(axis=1) ** 2
        total = float(np.maximum(variance, 0.0) @ self.ensemble.count)
        return max(math.sqrt(total), self.ensemble.parts[0].interval)

    def tilt(self, scale: float, delta: float | None, epsilon: float | None) -> float:
        """The tilt with the best Chernoff bound for the question. Any tilt gives a valid answer."""
        # A rare loss far above the scale of the sum can call for a tilt that is small even against that loss.
        low = 0.02 / max(scale, *(float(np.abs(loss).max()) for loss, _ in self.coarse))
        if delta is not None:
            target = math.log(delta)
            return _argmin(lambda theta: (self.log_moment(theta) - target) / theta, low, 2000.0 / scale)
        at = epsilon or 0.0
        return _argmin(lambda theta: self.log_moment(theta) - theta * at, low, 2000.0 / scale)

    def window_steps(self, theta: float, scale: float) -> tuple[float, float]:
        """The steps away from the tilt that give the narrowest Chernoff window below and above."""
        here, need = self.log_moment(theta), -math.log(_WRAP)

        def above(step: float) -> float:
            return (self.log_moment(theta + step) - here + need) / step

        def below(step: float) -> float:
            return (self.log_moment(theta - step) - here + need) / step

        return _argmin(below, 0.01 / scale, 2000.0 / scale), _argmin(above, 0.01 / scale, 2000.0 / scale)


def _argmin(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one minimum is least between two positive numbers, to 5 % (golden section)."""
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    a, b = math.log(low), math.log(high)
    left, right = b - golden * (b - a), a + golden * (b - a)
    at_left, at_right = function(math.exp(left)), function(math.exp(right))
    while b - a > 0.05:
        if at_left <= at_right or math.isnan(at_right):
            b, right, at_right = right, left, at_left
            left = b - golden * (b - a)
            at_left = function(math.exp(left))
        else:
            a, left, at_left = left, right, at_right
            right = a + golden * (b - a)
            at_right = function(math.exp(right))
    return math.exp(left if at_left <= at_right else right)


def _coarse(part: LossDistribution) -> tuple[Floats, Floats]:
    """A few hundred atoms with about the same moments: bins that are narrow in mass and in loss."""
    size = len(part.masses)
    by_loss = np.arange(0, size, max(1, size // _COARSE_ATOMS))
    share = np.cumsum(part.masses) / part.masses.sum()
    by_mass = np.searchsorted(share, np.arange(_COARSE_ATOMS) / _COARSE_ATOMS)
    # An atom that holds much of the mass stands alone, so that it does not hide what lies above it.
    starts = np.unique(np.concatenate([by_loss, by_mass, by_mass + 1]))
    starts = starts[starts < size]
    masses = np.add.reduceat(part.masses, starts)
    moments = np.add.reduceat(part.masses * part.losses, starts)
    kept = masses > 0.0
    return moments[kept] / masses[kept], np.log(masses[kept])


def _log_sum(exponents: Floats) -> float:
    peak = float(exponents.max())
    return peak + math.log(float(np.exp(exponents - peak).sum()))


def _window(
    ensemble: Ensemble, theta: float, log_moment: float, steps: tuple[float, float]
) -> tuple[int, int]:
    """Indices between which the tilted loss lies but for 2e-13, by Chernoff's bound on each side."""
    interval = ensemble.parts[0].interval
    lows = np.array([part.lowest for part in ensemble.parts], dtype=float)
    highs = np.array([part.lowest + len(part.masses) - 1 for part in ensemble.parts], dtype=float)
    lowest = float(lows[ensemble.index].min(axis=1) @ ensemble.count)
    highest = float(highs[ensemble.index].max(axis=1) @ ensemble.count)
    need = -math.log(_WRAP)
    below = (log_moment - ensemble.log_moment(theta - steps[0]) - need) / steps[0] / interval
    above = (ensemble.log_moment(theta + steps[1]) - log_moment + need) / steps[1] / interval
    bottom = max(lowest, math.floor(below)) if math.isfinite(below) else lowest
    top = min(highest, math.ceil(above)) if math.isfinite(above) else highest
    return int(bottom), int(max(top, bottom + 1))


def _transform(ensemble: Ensemble, theta: float, bottom: int, size: int) -> tuple[Floats, float]:
    """The tilted probabilities in the window, and a bound on the rounding error of each."""
    log_parts = np.array([_log_moment(part, theta) for part in ensemble.parts])
    spectra = np.array(
        [
            fft.rfft(_wrapped(part, theta, log, size))
            for part, log in zip(ensemble.parts, log_parts, strict=True)
        ]
    )
    # The share of each part in its mixture under the tilt.
    log_share = log_parts[ensemble.index]
    share = ensemble.weight * np.exp(log_share - log_share.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)

    with np.errstate(divide="ignore"):
        magnitude = np.log(np.abs(spectra))
    largest = np.zeros(spectra.shape[1])
    for row in np.unique(np.sort(ensemble.index, axis=1), axis=0):
        rows = (np.sort(ensemble.index, axis=1) == row).all(axis=1)
        largest += ensemble.count[rows].sum() * magnitude[row].max(axis=0)
    active = np.flatnonzero(largest > -_NEGLIGIBLE)

    log_spectrum = np.zeros(len(active), dtype=complex)
    amplification = np.ones(len(active))
    block = max(1, 2_000_000 // max(1, len(active)))
    for start in range(0, len(share), block):
        part = slice(start, start + block)
        mixed = np.einsum("tk,tkf->tf", share[part], spectra[:, active][ensemble.index[part]])
        with np.errstate(divide="ignore", invalid="ignore"):
            log_spectrum += ensemble.count[part] @ np.log(mixed)
            amplification += ensemble.count[part] @ (1.0 / np.abs(mixed))
    spectrum = np.zeros(spectra.shape[1], dtype=complex)
    spectrum[active] = np.where(np.isfinite(log_spectrum), np.exp(log_spectrum), 0.0)

    # A factor z computed to +-u is z (1 +- u/|z|); n factors multiply to a relative error of n u/|z|.
    unit = 4.0 * np.finfo(float).eps * math.log2(size + 2)
    finite = np.isfinite(log_spectrum)
    rounding = 2.0 * unit * float(np.abs(spectrum[active][finite]) @ amplification[finite]) / size
    probabilities = np.roll(fft.irfft(spectrum, size), -bottom % size)
    return np.maximum(probabilities, 0.0), rounding


def _wrapped(part: LossDistribution, theta: float, log_moment: float, size: int) -> Floats:
    """The tilted masses of one distribution on a circle of `size` points, the loss 0 at index 0."""
    with np.errstate(divide="ignore"):
        tilted = np.exp(np.log(part.masses) + theta * part.losses - log_moment)
    places = (part.lowest + np.arange(len(tilted))) % size
    return np.bincount(places, weights=tilted, minlength=size).astype(np.float64)

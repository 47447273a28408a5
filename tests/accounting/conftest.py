"""Exact values for the sampled Gaussian, by quadrature from the definition, sharing nothing with the package."""

from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, optimize, stats


def _renyi(rate, sigma, order, direction):
    """Renyi divergence of the sampled Gaussian, D(P'||P) for "add" and D(P||P') for "remove"."""
    x = np.linspace(-order - 14 * sigma, order + 14 * sigma, 400_001)
    log_p = stats.norm.logpdf(x, 0, sigma)
    log_mixed = np.logaddexp(np.log1p(-rate) + log_p, np.log(rate) + stats.norm.logpdf(x, 1, sigma))
    first, second = (log_mixed, log_p) if direction == "add" else (log_p, log_mixed)
    exponent = order * first + (1 - order) * second
    peak = exponent.max()
    return (peak + np.log(integrate.simpson(np.exp(exponent - peak), x=x))) / (order - 1)


def _hockey_stick(rate, sigma, epsilon, direction):
    """sup over sets of P'(S) - e^epsilon P(S) ("add"), or of P(S) - e^epsilon P'(S) ("remove").

    The likelihood ratio grows with x, so the best set is a half-line; its end is found by bisection.
    """
    sign = 1.0 if direction == "add" else -1.0

    def loss(x):
        log_q = np.log(rate) + (2 * x - 1) / (2 * sigma**2)
        return sign * np.logaddexp(np.log1p(-rate), log_q) - epsilon

    low, high = -60.0 * sigma, 1 + 60.0 * sigma
    if sign * loss(low) > 0 or sign * loss(high) < 0:  # the whole line, or nothing
        crossing = low if loss(0.5) > 0 else high
        crossing = crossing if direction == "add" else low + high - crossing
    else:
        crossing = optimize.brentq(loss, low, high, xtol=1e-14)
    ends = (
        (crossing, max(crossing, 1) + 14 * sigma)
        if direction == "add"
        else (min(crossing, 0) - 14 * sigma, crossing)
    )
    x = np.linspace(*ends, 40_001)
    p = stats.norm.pdf(x, 0, sigma)
    mixed = (1 - rate) * p + rate * stats.norm.pdf(x, 1, sigma)
    first, second = (mixed, p) if direction == "add" else (p, mixed)
    return max(float(integrate.simpson(first - np.exp(epsilon) * second, x=x)), 0.0)


def _gaussian_delta(mu, epsilon):
    """The exact delta of a Gaussian release of ratio mu (Balle and Wang 2018)."""
    with mp.workdps(40):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        return float(mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m))


@pytest.fixture
def exact():
    return SimpleNamespace(renyi=_renyi, hockey_stick=_hockey_stick, gaussian_delta=_gaussian_delta)

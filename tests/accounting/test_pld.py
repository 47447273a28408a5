import math

import numpy as np
import pytest

from discreet.accounting.budget import Accounting
from discreet.accounting.events import Gaussian, PoissonGaussian, PoissonPureDP, PureDP
from discreet.accounting.pld import connect_the_dots, loss_distributions
from discreet.accounting.profiles import gaussian_hockey_stick, privacy_profile

SETTINGS = [(0.01, 1.0), (0.3, 0.6), (0.05, 4.0), (0.9, 2.0)]


def divergence(distribution, epsilon):
    """The hockey-stick divergence of a loss distribution, straight from the definition."""
    above = distribution.losses > epsilon
    gaps = -np.expm1(epsilon - distribution.losses[above])
    return float(gaps @ distribution.masses[above]) + distribution.infinity


@pytest.mark.parametrize("epsilon", [0.0, 0.003, 0.05, 0.4, 2.0])
@pytest.mark.parametrize(("rate", "sigma"), SETTINGS)
def test_profile_is_the_exact_hockey_stick_in_both_directions(exact, rate, sigma, epsilon):
    profile = privacy_profile(PoissonGaussian(sample_rate=rate, noise_multiplier=sigma), Accounting.VISIBLE)
    for direction in ("add", "remove"):
        ours = float(getattr(profile, direction)(np.array([epsilon]))[0])
        assert ours == pytest.approx(exact.hockey_stick(rate, sigma, epsilon, direction), rel=1e-8, abs=1e-14)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 20.0])
def test_gaussian_profile_keeps_its_relative_precision_in_the_tail(exact, sigma):
    mu = 1 / sigma
    epsilons = mu**2 / 2 + mu * np.array([0.0, 3.0, 7.0, 15.0, 30.0])
    ours = gaussian_hockey_stick(epsilons, sigma)
    assert ours == pytest.approx([exact.gaussian_delta(mu, e) for e in epsilons], rel=1e-9, abs=0)


@pytest.mark.parametrize("interval", [0.3, 0.01])
@pytest.mark.parametrize(("rate", "sigma"), SETTINGS)
def test_loss_distribution_is_never_below_the_exact_divergence(exact, rate, sigma, interval):
    event = PoissonGaussian(sample_rate=rate, noise_multiplier=sigma)
    for direction, distribution in zip(("add", "remove"), loss_distributions(event, interval), strict=True):
        for epsilon in (0.0, 0.004, 0.1, 0.35, 1.0):
            truth = exact.hockey_stick(rate, sigma, epsilon, direction)
            assert divergence(distribution, epsilon) >= truth * (1 - 1e-11) - 1e-14


def test_the_same_check_catches_losses_that_are_rounded_down(exact):
    """The planted fault: each loss moved to the grid point below, as an optimistic discretisation does."""
    honest = loss_distributions(PoissonGaussian(sample_rate=0.3, noise_multiplier=0.6), 0.1)[0]
    truth = exact.hockey_stick(0.3, 0.6, 0.35, "add")
    losses = honest.losses - honest.interval
    optimistic = float(-np.expm1(0.35 - losses[losses > 0.35]) @ honest.masses[losses > 0.35])
    assert divergence(honest, 0.35) >= truth
    assert optimistic < truth


@pytest.mark.parametrize(
    "event",
    [
        PoissonGaussian(sample_rate=0.01, noise_multiplier=1.0),
        Gaussian(noise_multiplier=0.7),
        PureDP(epsilon=0.5),
        PoissonPureDP(sample_rate=0.2, epsilon=2.0),
    ],
)
def test_both_laws_of_the_pair_are_probabilities(event):
    for distribution in loss_distributions(event, 0.01):
        assert distribution.masses.min() >= 0.0
        assert distribution.masses.sum() + distribution.infinity == pytest.approx(1.0, abs=1e-9)
        assert float(np.exp(-distribution.losses) @ distribution.masses) <= 1.0 + 1e-9


def test_pure_dp_on_the_grid_is_exact():
    (distribution, _) = loss_distributions(PureDP(epsilon=1.0), 0.125)
    expected = {1.0: math.e / (1 + math.e), -1.0: 1 / (1 + math.e)}
    found = {
        loss: mass
        for loss, mass in zip(distribution.losses, distribution.masses, strict=True)
        if mass > 1e-15
    }
    assert found == pytest.approx(expected)


def test_a_profile_that_is_not_a_number_counts_as_1():
    clean = privacy_profile(Gaussian(noise_multiplier=1.0), Accounting.VISIBLE)

    def spoiled(epsilon):
        return np.where(np.abs(epsilon - 1.0) < 0.2, np.nan, clean.add(epsilon))

    honest = connect_the_dots(clean.add, clean.remove, 0.01)
    for up, down in ((spoiled, clean.remove), (clean.add, spoiled), (spoiled, spoiled)):
        bound = connect_the_dots(up, down, 0.01)
        for epsilon in (0.0, 0.5, 1.0, 2.0):
            assert divergence(bound, epsilon) >= divergence(honest, epsilon) - 1e-12
    assert divergence(connect_the_dots(np.vectorize(lambda _: np.nan), clean.remove, 1e14), 1.0) == 1.0

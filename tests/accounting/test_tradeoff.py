"""What a profile says of probabilities and of groups, against closed forms and brute force."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom, norm

from discreet.accounting import Gaussian, PoissonGaussian, Profile, PureDP, delta, epsilon, profile
from discreet.accounting.tradeoff import group_delta, group_epsilon, lines

SAMPLED = [(PoissonGaussian(sample_rate=0.05, noise_multiplier=1.2), 40)]


def test_the_profile_of_a_composition_is_what_delta_says_at_each_epsilon():
    found = profile(SAMPLED)
    epsilons = np.array([0.0, 0.3, 1.0, 2.5])
    both = np.maximum(found.add(epsilons), found.remove(epsilons))
    each = [delta(SAMPLED, value) for value in epsilons]
    assert both == pytest.approx(each, rel=0.02)
    assert (both >= np.array(each) * (1 - 1e-9)).all()


def test_a_profile_by_renyi_divergences_is_a_weaker_bound():
    epsilons = np.array([0.5, 1.0, 2.0])
    assert (profile(SAMPLED, calculus="rdp").add(epsilons) > profile(SAMPLED).add(epsilons)).all()


def test_nothing_released_allows_nothing():
    assert profile([]).add(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]


def test_the_most_that_a_test_of_a_gaussian_can_hit_is_its_trade_off_curve():
    mu = 0.7
    add, remove = lines(profile([(Gaussian(noise_multiplier=1 / mu), 1)]))
    alarms = np.array([1e-6, 1e-3, 0.05, 0.3, 0.7, 0.99])
    best = ndtr(ndtri(alarms) + mu)
    for side in (add, remove):
        assert (side.most(alarms) >= best - 1e-9).all()
        assert side.most(alarms) == pytest.approx(best, rel=0.02)


def test_a_sampled_mechanism_never_exceeds_its_lines():
    """Explicit tests of one sampled Gaussian, both ways."""
    rate, sigma = 0.1, 0.8
    add, remove = lines(profile([(PoissonGaussian(sample_rate=rate, noise_multiplier=sigma), 1)]))
    cuts = np.linspace(-4, 6, 60)
    without = norm.sf(cuts / sigma)
    present = (1 - rate) * without + rate * norm.sf((cuts - 1) / sigma)
    assert (present <= add.most(without) + 1e-12).all()
    assert (1 - without <= remove.most(1 - present) + 1e-12).all()
    assert (present > 0.9 * add.most(without)).all()


def test_lines_of_half_the_loss_are_exceeded():
    """The planted fault: the profile of twice the noise."""
    rate, sigma = 0.1, 0.8
    add, _ = lines(profile([(PoissonGaussian(sample_rate=rate, noise_multiplier=2 * sigma), 1)]))
    without = norm.sf(np.linspace(-4, 6, 60) / sigma)
    present = (1 - rate) * without + rate * ndtr(ndtri(without) + 1 / sigma)
    assert (present > add.most(without) + 1e-3).any()


@pytest.mark.parametrize("records", [1, 2, 4])
def test_a_group_of_a_gaussian_is_a_gaussian_that_much_further_away(records):
    found = profile([(Gaussian(noise_multiplier=5.0), 1)])
    exact = epsilon([(Gaussian(noise_multiplier=5.0 / records), 1)], 1e-5)
    assert exact <= group_epsilon(found, records, 1e-5) <= 1.04 * exact


def test_a_group_under_pure_privacy_pays_for_each_record():
    found = profile([(PureDP(epsilon=0.3), 1)])
    assert 0.9 <= group_epsilon(found, 3, 1e-9) <= 0.95


def copies(rate: float, sigma: float, records: int, at: float) -> float:
    """The exact divergence of one release when so many equal records are added: a mixture of shifts."""
    grid = np.linspace(-12 * sigma, 12 * sigma + records, 200_001)
    base = norm.pdf(grid, scale=sigma)
    shares = binom.pmf(np.arange(records + 1), records, rate)
    mixed = sum(
        share * norm.pdf(grid, loc=shift, scale=sigma) for shift, share in enumerate(shares) if share > 0
    )
    added = np.trapezoid(np.maximum(mixed - np.exp(at) * base, 0), grid)
    removed = np.trapezoid(np.maximum(base - np.exp(at) * mixed, 0), grid)
    return float(max(added, removed))


@pytest.mark.parametrize("records", [1, 2, 3, 6])
@pytest.mark.parametrize("at", [0.1, 0.5, 1.5])
def test_copies_of_a_record_cost_at_most_what_is_said_of_the_group(records, at):
    rate, sigma = 0.2, 1.5
    found = profile([(PoissonGaussian(sample_rate=rate, noise_multiplier=sigma), 1)])
    assert copies(rate, sigma, records, at) <= group_delta(found, records, at)


def test_the_bound_for_one_record_does_not_hold_for_its_copies():
    """The planted fault: repeated records are forgotten."""
    rate, sigma = 0.2, 1.5
    found = profile([(PoissonGaussian(sample_rate=rate, noise_multiplier=sigma), 1)])
    assert copies(rate, sigma, 3, 0.5) > group_delta(found, 1, 0.5)


def test_a_group_has_a_record():
    with pytest.raises(ValueError, match="at least 1"):
        group_delta(Profile(add=np.zeros_like, remove=np.zeros_like), 0, 1.0)

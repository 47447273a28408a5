import math

import numpy as np
import pytest

from discreet.accounting import spread as spreading
from discreet.accounting.budget import Accounting
from discreet.accounting.composition import epsilon
from discreet.accounting.events import Gaussian, PoissonGaussian
from discreet.accounting.profiles import privacy_profile
from discreet.accounting.rdp import ORDERS, certified_rdp, epsilon_from_rdp
from discreet.accounting.spread import few_distinct, merged, spread

EPSILONS = np.concatenate([[0.0], np.geomspace(1e-6, 30.0, 200)])


def worst_shortfall(event, mixture):
    """How far, relatively, the mixture's divergence lies below the event's, at worst; above 0 is a violation."""
    worst = -math.inf
    for direction in ("add", "remove"):
        truth = getattr(privacy_profile(event, Accounting.VISIBLE), direction)(EPSILONS)
        bound = sum(
            weight * getattr(privacy_profile(part, Accounting.VISIBLE), direction)(EPSILONS)
            for weight, part in mixture
        )
        worst = max(worst, float(((truth - bound) / np.maximum(truth, 1e-250)).max()))
    return worst


def random_events(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        rate, sigma = float(10 ** rng.uniform(-5, 0)), float(10 ** rng.uniform(-1.5, 2.5))
        yield PoissonGaussian(sample_rate=rate, noise_multiplier=sigma)


@pytest.mark.parametrize("ratio", [1.04, 1.3, 2.0])
def test_the_public_mixture_dominates_at_every_epsilon_in_both_directions(ratio):
    for event in random_events(200):
        mixture = spread(event, ratio)
        assert sum(weight for weight, _ in mixture) == pytest.approx(1.0)
        assert worst_shortfall(event, mixture) <= 1e-9


def test_the_same_check_catches_weights_that_interpolate_the_multiplier_itself():
    """The planted fault: linear weights in sigma. Divergences are not convex along it."""
    found = -math.inf
    for event in random_events(50):
        sigma, low, high = event.noise_multiplier, event.noise_multiplier / 1.3, event.noise_multiplier * 1.3
        weight = (high - sigma) / (high - low)
        mixture = [
            (share, PoissonGaussian(sample_rate=event.sample_rate, noise_multiplier=multiplier))
            for share, multiplier in ((weight * 0.5, low), (1 - weight * 0.5, high))
        ]
        found = max(found, worst_shortfall(event, mixture))
    assert found > 1e-3


@pytest.mark.parametrize(("high", "low"), [(8.0, 2.0), (1.2, 0.8)])
def test_ten_thousand_different_multipliers_cost_half_a_percent_more_at_most(high, low):
    events = [
        PoissonGaussian(sample_rate=0.01, noise_multiplier=float(s)) for s in np.linspace(high, low, 10_000)
    ]
    by_every_hundredth = sum(100 * certified_rdp(event) for event in events[50::100])
    exact = epsilon_from_rdp(by_every_hundredth, 1e-5, ORDERS)
    rdp = epsilon([(event, 1) for event in events], 1e-5, calculus="rdp")
    assert exact * (1 - 1e-3) <= rdp <= exact * 1.005
    assert epsilon([(event, 1) for event in events], 1e-5, calculus="pld") < rdp


@pytest.mark.parametrize("calculus", ["pld", "rdp"])
def test_a_schedule_on_the_grid_costs_what_its_parts_cost(monkeypatch, calculus):
    rng = np.random.default_rng(1)
    charges = [
        (PoissonGaussian(sample_rate=float(r), noise_multiplier=float(s)), int(n))
        for r, s, n in zip(
            rng.uniform(0.01, 0.02, 40), rng.uniform(1.5, 2.5, 40), rng.integers(1, 9, 40), strict=True
        )
    ]
    as_they_are = epsilon(charges, 1e-5, calculus=calculus)
    monkeypatch.setattr(spreading, "MAX_DISTINCT", 20)
    monkeypatch.setattr(spreading, "_MAX_EXACT", 20)
    assert max(len(mixture) for mixture, _ in few_distinct(charges)) > 1
    on_the_grid = epsilon(charges, 1e-5, calculus=calculus)
    assert as_they_are * (1 - 1e-6) <= on_the_grid <= as_they_are * (1.005 if calculus == "pld" else 1.02)


def test_many_different_events_are_brought_onto_few():
    rng = np.random.default_rng(2)
    charges = [
        (PoissonGaussian(sample_rate=float(r), noise_multiplier=float(s)), 1)
        for r, s in zip(rng.uniform(1e-3, 0.5, 1000), rng.uniform(0.5, 50.0, 1000), strict=True)
    ]
    distinct = {part for mixture, _ in few_distinct(charges) for _, part in mixture}
    assert len(distinct) <= 96


def test_a_grid_that_would_save_nothing_is_not_used():
    rng = np.random.default_rng(3)
    charges = [
        (PoissonGaussian(sample_rate=float(r), noise_multiplier=float(s)), 1)
        for r, s in zip(rng.uniform(1e-3, 0.5, 70), rng.uniform(0.5, 50.0, 70), strict=True)
    ]
    assert few_distinct(charges) == [(((1.0, event),), count) for event, count in charges]


def test_a_long_schedule_becomes_few_mixtures():
    charges = [
        (PoissonGaussian(sample_rate=0.01, noise_multiplier=float(s)), 1)
        for s in np.linspace(2.0, 1.0, 50_000)
    ]
    terms = few_distinct(charges)
    assert sum(count for _, count in terms) == 50_000
    assert len(terms) <= 64 * 97


def test_gaussian_releases_join_exactly_and_free_ones_vanish():
    charges = [
        (Gaussian(noise_multiplier=3.0), 9),
        (PoissonGaussian(sample_rate=1.0, noise_multiplier=1.0), 3),
        (PoissonGaussian(sample_rate=0.0, noise_multiplier=1.0), 3),
    ]
    assert merged(charges) == [(Gaussian(noise_multiplier=0.5), 1)]

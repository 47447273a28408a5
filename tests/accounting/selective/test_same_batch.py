"""Gates on the training batch: explicit two-point laws, small data sets, and the paper's formula."""

import itertools

import numpy as np
import pytest

from discreet.accounting import Accounting, privacy_profile
from discreet.accounting.rdp import rdp_curve
from discreet.accounting.selective import BatchGate, BatchGatedTrial, claimed_rdp, same_batch
from discreet.accounting.selective.likelihood import LikelihoodRatio

EPSILONS = np.array([0.0, 0.01, 0.1, 0.4])


def sample(rate, sigma):
    y = np.linspace(-12.0, 13.0 + 1.0 / sigma, 20_001)
    mass = np.exp(-(y**2) / 2.0) / np.sqrt(2.0 * np.pi) * (y[1] - y[0])
    return mass, np.exp(y / sigma - 0.5 / sigma**2)


@pytest.mark.parametrize(
    ("rate", "sigma", "low", "high"), [(0.16, 11.0, 0.44, 2.26), (0.5, 1.5, 0.3, 1.0), (1.0, 3.0, 0.5, 2.0)]
)
@pytest.mark.parametrize("order", [1.5, 4.0])
def test_the_hidden_bounds_are_attained_by_a_mixture_of_two_ratios(rate, sigma, low, high, order):
    mass, likelihood = sample(rate, sigma)
    bounds = [
        curve[0]
        for curve in same_batch.hidden_rdp(LikelihoodRatio(rate, sigma), low, high, np.array([order]))
    ]
    profile = same_batch.hidden_profile(LikelihoodRatio(rate, sigma), low, high)
    divergences, sticks = np.zeros(2), np.zeros((2, len(EPSILONS)))
    for share in np.linspace(0.0, 1.0, 101):
        mean = 1.0 - rate + rate * ((1.0 - share) * low + share * high)
        ratios = [
            (w, (1.0 - rate + rate * r * likelihood) / mean) for w, r in ((1.0 - share, low), (share, high))
        ]
        for side, power in enumerate((order, 1.0 - order)):
            moment = sum(w * (mass * ratio**power).sum() for w, ratio in ratios)
            divergences[side] = max(divergences[side], np.log(moment) / (order - 1.0))
        for i, g in enumerate(np.exp(EPSILONS)):
            added = sum(w * (mass * np.maximum(ratio - g, 0.0)).sum() for w, ratio in ratios)
            removed = sum(w * (mass * np.maximum(1.0 - g * ratio, 0.0)).sum() for w, ratio in ratios)
            sticks[:, i] = np.maximum(sticks[:, i], (added, removed))
    assert np.all(divergences <= np.array(bounds) * (1.0 + 1e-9))
    np.testing.assert_allclose(bounds, divergences, rtol=2e-4)
    assert np.all(sticks[0] <= profile.add(EPSILONS) + 1e-9)
    assert np.all(sticks[1] <= profile.remove(EPSILONS) + 1e-9)
    np.testing.assert_allclose(profile.add(EPSILONS)[:2], sticks[0][:2], rtol=2e-3, atol=1e-7)


@pytest.mark.parametrize("one_sided", [False, True])
def test_small_data_sets_stay_below_the_visible_bounds(exact, one_sided):
    rate, sigma = 0.4, 1.2
    event = BatchGatedTrial(
        sample_rate=rate,
        noise_multiplier=sigma,
        gate_multiplier=0.8,
        gate_threshold=-0.3,
        one_sided=one_sided,
    )
    gate, orders = event.gate, np.array([1.5, 3.0, 8.0])
    bound = rdp_curve(event, orders, Accounting.VISIBLE)
    profile = privacy_profile(event, Accounting.VISIBLE)
    mass, likelihood = sample(rate, sigma)
    values = np.linspace(gate.low, gate.high, 4)
    for a, a1 in itertools.product(values, values):
        if not gate.low_ratio <= a1 / a <= gate.high_ratio:
            continue
        # Other records: none. The batch is empty or holds the record.
        p = np.append(mass * a, 1.0 - a)
        q = np.append(
            mass * ((1 - rate) * a + rate * a1 * likelihood), (1 - rate) * (1 - a) + rate * (1 - a1)
        )
        for first, second in ((p, q), (q, p)):
            renyi = [exact.renyi(first, second, order) for order in orders]
            assert np.all(renyi <= bound * (1.0 + 1e-9))
        for epsilon in EPSILONS:
            g = np.exp(epsilon)
            assert np.maximum(q - g * p, 0.0).sum() <= profile.add(np.array([epsilon]))[0] + 1e-8
            assert np.maximum(p - g * q, 0.0).sum() <= profile.remove(np.array([epsilon]))[0] + 1e-8


@pytest.mark.parametrize(("one_sided", "factor"), [(False, 12.7), (True, 4.9)])
def test_an_inflated_sampling_rate_underestimates_batches_that_differ(one_sided, factor):
    event = BatchGatedTrial(
        sample_rate=8192 / 50000,
        noise_multiplier=11.0,
        gate_multiplier=1.3,
        gate_threshold=1.0,
        one_sided=one_sided,
    )
    order = np.array([4.0])
    certified = rdp_curve(event, order, Accounting.HIDDEN)[0]
    assert certified / claimed_rdp(event, order)[0] == pytest.approx(factor, abs=0.06)


def test_releasing_the_metric_costs_more_than_a_public_reference():
    settings = {"sample_rate": 0.1, "noise_multiplier": 2.0, "gate_multiplier": 3.0, "gate_threshold": -0.5}
    orders = np.array([2.0, 8.0])
    for accounting in (Accounting.HIDDEN, Accounting.VISIBLE):
        public = rdp_curve(BatchGatedTrial(**settings), orders, accounting)
        private = rdp_curve(BatchGatedTrial(**settings, private_reference=True), orders, accounting)
        assert np.all(public < private)


def test_a_wider_range_of_ratios_costs_more():
    law, orders = LikelihoodRatio(0.1, 2.0), np.array([1.5, 4.0, 32.0])
    costs = [np.maximum(*same_batch.hidden_rdp(law, 1.0 / r, r, orders)) for r in (1.0, 1.2, 1.7, 3.0)]
    assert all(np.all(less < more) for less, more in itertools.pairwise(costs))


def test_the_vertices_of_a_one_sided_gate_never_raise_the_acceptance():
    gate = BatchGate(noise_multiplier=1.0, threshold=-0.5, span=5.0, one_sided=True)
    vertices = same_batch.batch_vertices(gate)
    assert len(vertices) >= 4
    assert all(a1 <= a * (1 + 1e-9) and a1 >= a * gate.low_ratio * (1 - 1e-9) for a, a1, _, _ in vertices)

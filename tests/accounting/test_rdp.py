import math

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant as google
from opacus.accountants.analysis import rdp as opacus

from discreet.accounting.budget import Accounting
from discreet.accounting.events import Gaussian, PoissonGaussian, PoissonPureDP, PureDP
from discreet.accounting.rdp import ORDERS, certified_rdp, delta_from_rdp, epsilon_from_rdp

SETTINGS = [(0.01, 1.0), (1024 / 60000, 2.0), (0.02048, 0.56), (8192 / 50000, 11.0), (1e-4, 0.7), (0.5, 3.0)]
COMMON = ORDERS[ORDERS <= 512]


def at(event, orders):
    return certified_rdp(event, np.asarray(orders, dtype=float), Accounting.VISIBLE)


@pytest.mark.parametrize(("rate", "sigma"), SETTINGS)
def test_sampled_gaussian_agrees_with_opacus_at_every_order(rate, sigma):
    theirs = opacus.compute_rdp(q=rate, noise_multiplier=sigma, steps=1, orders=list(COMMON))
    ours = at(PoissonGaussian(sample_rate=rate, noise_multiplier=sigma), COMMON)
    assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize(("rate", "sigma"), SETTINGS)
def test_sampled_gaussian_agrees_with_dp_accounting_at_whole_orders(rate, sigma):
    """At fractional orders dp_accounting sums absolute values of an alternating series: above, up to 14 % and more."""
    theirs = google._compute_rdp_poisson_subsampled_gaussian(rate, sigma, COMMON)
    ours = at(PoissonGaussian(sample_rate=rate, noise_multiplier=sigma), COMMON)
    whole = np.floor(COMMON) == COMMON
    assert ours[whole] == pytest.approx(theirs[whole], rel=1e-6, abs=1e-13)
    assert (ours <= theirs * (1 + 1e-6) + 1e-13).all()


@pytest.mark.parametrize("order", [1.1, 1.7, 2.0, 3.3, 8.0, 10.9])
@pytest.mark.parametrize(("rate", "sigma"), [(0.01, 1.0), (0.3, 0.6), (0.05, 4.0)])
def test_rdp_is_the_exact_larger_direction(exact, rate, sigma, order):
    ours = at(PoissonGaussian(sample_rate=rate, noise_multiplier=sigma), [order])[0]
    add, remove = (exact.renyi(rate, sigma, order, direction) for direction in ("add", "remove"))
    assert ours == pytest.approx(add, rel=1e-8)
    assert ours >= remove
    # The same comparison fails for a rate that is half of what it should be.
    assert at(PoissonGaussian(sample_rate=rate / 2, noise_multiplier=sigma), [order])[0] < add


@pytest.mark.parametrize("sigma", [0.02, 0.049, 0.051, 0.1])
def test_tiny_noise_stays_above_the_exact_value_at_fractional_orders(exact, sigma):
    for order in (1.3, 2.5):
        ours = at(PoissonGaussian(sample_rate=0.1, noise_multiplier=sigma), [order])[0]
        assert ours >= exact.renyi(0.1, sigma, order, "add") * (1 - 1e-9)


def test_rate_1_is_the_plain_gaussian_and_rate_0_is_free():
    plain = certified_rdp(Gaussian(noise_multiplier=1.3))
    assert certified_rdp(PoissonGaussian(sample_rate=1.0, noise_multiplier=1.3)) == pytest.approx(plain)
    almost = certified_rdp(PoissonGaussian(sample_rate=1 - 1e-12, noise_multiplier=1.3))
    assert almost == pytest.approx(plain, rel=1e-6)
    assert not certified_rdp(PoissonGaussian(sample_rate=0.0, noise_multiplier=1e-3)).any()


@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.999])
@pytest.mark.parametrize("sigma", [1e-3, 0.1, 1.0, 1e4])
def test_the_curve_is_finite_positive_and_non_decreasing_in_the_order(rate, sigma):
    curve = certified_rdp(PoissonGaussian(sample_rate=rate, noise_multiplier=sigma))
    assert np.isfinite(curve).all()
    assert (curve > 0).all()
    assert (np.diff(curve) >= -1e-9 * curve[1:]).all()


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_pure_dp_is_randomised_response(epsilon):
    sinh = [
        math.log((math.sinh(a * epsilon) - math.sinh((a - 1) * epsilon)) / math.sinh(epsilon)) / (a - 1)
        for a in COMMON[COMMON <= 40]
    ]
    assert at(PureDP(epsilon=epsilon), COMMON[COMMON <= 40]) == pytest.approx(sinh, rel=1e-7)
    assert certified_rdp(PureDP(epsilon=epsilon)).max() <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize(("rate", "epsilon"), [(0.01, 1.0), (0.3, 0.2), (0.5, 4.0)])
def test_sampled_pure_dp_is_below_the_amplified_symmetric_formula(rate, epsilon):
    amplified = math.log1p(rate * math.expm1(epsilon))
    ours = certified_rdp(PoissonPureDP(sample_rate=rate, epsilon=epsilon))
    assert (ours <= certified_rdp(PureDP(epsilon=amplified)) * (1 + 1e-12)).all()
    p = 1 / (1 + math.exp(epsilon))
    first = np.array([p, 1 - p])
    mixed = (1 - rate) * first + rate * first[::-1]
    kl = max((mixed * np.log(mixed / first)).sum(), (first * np.log(first / mixed)).sum())
    assert ours[0] >= kl  # every order is above the Kullback-Leibler divergence of the pair


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9])
def test_conversion_agrees_with_dp_accounting(delta):
    curve = 500 * certified_rdp(PoissonGaussian(sample_rate=0.01, noise_multiplier=1.1))
    theirs, _ = google.compute_epsilon(ORDERS, curve, delta)
    assert epsilon_from_rdp(curve, delta) == pytest.approx(theirs, rel=1e-12)
    back, _ = google.compute_delta(ORDERS, curve, theirs)
    assert delta_from_rdp(curve, theirs) == pytest.approx(back, rel=1e-9)


def test_an_order_that_is_not_a_number_counts_as_infinite():
    curve = np.array(100 * certified_rdp(PoissonGaussian(sample_rate=0.01, noise_multiplier=1.0)))
    whole = epsilon_from_rdp(curve, 1e-5)
    for place in range(0, len(curve), 7):
        spoiled = curve.copy()
        spoiled[place] = np.nan
        assert whole <= epsilon_from_rdp(spoiled, 1e-5) < math.inf
        assert delta_from_rdp(spoiled, 1.0) >= delta_from_rdp(curve, 1.0)
    assert epsilon_from_rdp(np.full_like(curve, np.nan), 1e-5) == math.inf
    assert delta_from_rdp(np.full_like(curve, np.nan), 1.0) == 1.0

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as google
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants import PRVAccountant

from discreet.accounting import composition
from discreet.accounting.composition import delta, epsilon
from discreet.accounting.events import (
    Event,
    Gaussian,
    PoissonGaussian,
    PoissonPureDP,
    PureDP,
    Several,
    UnknownEventError,
)
from discreet.accounting.profiles import Profile, privacy_profile
from discreet.accounting.rdp import rdp_curve


def sampled(rate, sigma):
    return PoissonGaussian(sample_rate=rate, noise_multiplier=sigma)


STATISTICS = (Gaussian(noise_multiplier=8.0), 2)


@pytest.mark.parametrize(
    ("charges", "rdp", "pld"),
    [
        ([STATISTICS], 0.695, 0.634),
        ([(sampled(8192 / 50000, 11.0), 269)], 0.999, 0.913),
        ([(sampled(0.02, 0.9), 100)], 2.409, 1.888),
        ([(sampled(0.02, 2**-0.5), 1000)], None, 8.83),
        ([(sampled(0.02, 1.0), 2000)], None, 5.62),
    ],
)
def test_known_epsilons(charges, rdp, pld):
    if rdp is not None:
        assert epsilon(charges, 1e-5, calculus="rdp") == pytest.approx(rdp, abs=6e-4)
    assert epsilon(charges, 1e-5, calculus="pld") == pytest.approx(pld, abs=6e-3 if pld > 3 else 6e-4)
    assert epsilon(charges, 1e-5) == epsilon(charges, 1e-5, calculus="pld")


@pytest.mark.parametrize("target", [1e-3, 1e-5, 1e-8])
@pytest.mark.parametrize(
    ("rate", "sigma", "count"), [(1024 / 60000, 2.0, 458), (0.02, 0.9, 1), (0.01, 1.0, 3000)]
)
def test_pld_agrees_with_dp_accounting_on_the_same_grid(monkeypatch, rate, sigma, count, target):
    monkeypatch.setattr(composition, "_interval", lambda *_: 1e-3)
    theirs = google.from_gaussian_mechanism(
        sigma, sampling_prob=rate, use_connect_dots=True, value_discretization_interval=1e-3
    ).self_compose(count)
    ours = epsilon([(sampled(rate, sigma), count)], target, calculus="pld")
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(target), rel=3e-6)


@pytest.mark.parametrize(("rate", "sigma", "count"), [(1024 / 60000, 2.0, 458), (0.02, 0.9, 100)])
def test_pld_lies_between_an_optimistic_and_a_pessimistic_discretisation(rate, sigma, count):
    def by_rounding(pessimistic):
        single = google.from_gaussian_mechanism(
            sigma,
            sampling_prob=rate,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
            value_discretization_interval=1e-3 if pessimistic else 1e-4,
        )
        return single.self_compose(count).get_epsilon_for_delta(1e-5)

    assert (
        by_rounding(False)
        < epsilon([(sampled(rate, sigma), count)], 1e-5, calculus="pld")
        < by_rounding(True)
    )


def test_pld_agrees_with_the_prv_accountant_of_opacus():
    accountant = PRVAccountant()
    accountant.history = [(1.0, 0.01, 1000)]
    ours = epsilon([(sampled(0.01, 1.0), 1000)], 1e-5, calculus="pld")
    assert ours == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-2)


@pytest.mark.parametrize("target", [0.1, 1e-5, 1e-15])
@pytest.mark.parametrize("count", [1, 1000, 1_000_000])
def test_gaussian_composition_is_exact_and_never_below(exact, count, target):
    """Through the Fourier transform: the noise differs in the last digits, so nothing is joined beforehand."""
    sigma = math.sqrt(count)
    almost_plain = [(sampled(1 - 1e-13, sigma), count)]
    found = epsilon(almost_plain, target, calculus="pld")
    assert exact.gaussian_delta(1.0, found) <= target * (1 + 1e-6)
    assert exact.gaussian_delta(1.0, found * (1 - 2e-3)) > target
    assert epsilon([(Gaussian(noise_multiplier=sigma), count)], target, calculus="pld") == pytest.approx(
        found, rel=1e-3
    )


@pytest.mark.parametrize("rate", [0.0, 1e-6, 0.01, 1.0])
@pytest.mark.parametrize("sigma", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("count", [1, 1_000_000])
def test_extreme_settings_stay_finite_and_ordered(rate, sigma, count):
    charges = [(sampled(rate, sigma), count)]
    best, pld, rdp = (epsilon(charges, 1e-5, calculus=calculus) for calculus in ("best", "pld", "rdp"))
    assert 0.0 <= best == min(pld, rdp) < math.inf
    assert best == 0.0 or rate > 0.0
    # Sampling can only help, and the group of all releases is one Gaussian without it.
    assert best <= epsilon([(Gaussian(noise_multiplier=sigma), count)], 1e-5) * (1 + 1e-3)
    assert delta(charges, best) <= 1e-5 * (1 + 1e-3)


@settings(max_examples=12, deadline=None)
@given(
    rate=st.floats(1e-4, 0.9),
    sigma=st.floats(0.6, 20.0),
    count=st.integers(1, 1000),
    factor=st.floats(1.02, 3.0),
    calculus=st.sampled_from(["pld", "rdp"]),
)
def test_more_noise_fewer_records_and_fewer_releases_cost_less(rate, sigma, count, factor, calculus):
    def cost(rate, sigma, count):
        return epsilon([(sampled(rate, sigma), count)], 1e-5, calculus=calculus)

    base, room = cost(rate, sigma, count), 1 + 1e-3
    assert cost(rate, sigma * factor, count) <= base * room
    assert cost(rate / factor, sigma, count) <= base * room
    assert cost(rate, sigma, max(1, int(count / factor))) <= base * room


@pytest.mark.parametrize("calculus", ["pld", "rdp"])
def test_delta_and_epsilon_are_inverse(calculus):
    charges = [(sampled(0.01, 1.0), 1000), STATISTICS]
    for target in (1e-3, 1e-5, 1e-9):
        found = epsilon(charges, target, calculus=calculus)
        assert delta(charges, found, calculus=calculus) == pytest.approx(target, rel=1e-3)


@pytest.mark.parametrize("calculus", ["pld", "rdp"])
def test_order_and_grouping_of_charges_do_not_matter(calculus):
    a, b = sampled(0.01, 1.0), PoissonPureDP(sample_rate=0.02, epsilon=0.5)
    together = Several(events=(a, Several(events=(b, Gaussian(noise_multiplier=50.0)))))
    apart = [(Gaussian(noise_multiplier=50.0), 300), (b, 100), (a, 300), (b, 200)]
    expected = epsilon([(together, 300)], 1e-5, calculus=calculus)
    assert epsilon(apart, 1e-5, calculus=calculus) == pytest.approx(expected, rel=1e-9)
    # The planted fault: one part forgotten is noticed.
    assert epsilon(apart[1:], 1e-5, calculus=calculus) < expected * 0.999


@pytest.mark.parametrize("calculus", ["pld", "rdp"])
def test_pure_dp_never_costs_more_than_the_sum(calculus):
    assert epsilon([(PureDP(epsilon=0.3), 3)], 1e-12, calculus=calculus) <= 0.9 * (
        1.002 if calculus == "rdp" else 1.05
    )
    assert epsilon([(PureDP(epsilon=0.3), 100)], 1e-5, calculus=calculus) < 30.0
    # A composition that forgets to count would return 0.3.
    assert epsilon([(PureDP(epsilon=0.3), 100)], 1e-5, calculus=calculus) >= 7.5


def test_nothing_costs_nothing():
    assert epsilon([], 1e-5) == 0.0
    assert epsilon([(sampled(0.0, 1.0), 10**6), (sampled(0.5, 1.0), 0)], 1e-5) == 0.0
    assert delta([], 1.0) == 0.0


@pytest.mark.parametrize("bad", [-1, 1.5, True])
def test_counts_must_be_whole(bad):
    with pytest.raises(ValueError, match="count of a charge"):
        epsilon([(sampled(0.1, 1.0), bad)], 1e-5)


def test_claimed_and_unknown_words_are_refused():
    with pytest.raises(ValueError, match="'visible' or 'hidden'"):
        epsilon([STATISTICS], 1e-5, accounting="claimed")
    with pytest.raises(ValueError, match="calculus must be"):
        epsilon([STATISTICS], 1e-5, calculus="gdp")
    with pytest.raises(ValueError, match="delta must be"):
        epsilon([STATISTICS], 0.0)


@dataclass(frozen=True, kw_only=True)
class Strange(Event):
    """An event whose bounds are not numbers in places."""

    kind: ClassVar[str] = "strange"
    rdp_fault: str = "none"
    profile_fault: str = "none"


@rdp_curve.register
def _(event: Strange, orders, accounting):
    curve = rdp_curve(Gaussian(noise_multiplier=1.0), orders, accounting)
    if event.rdp_fault == "missing":
        raise UnknownEventError("no RDP")
    spoiled = {"none": [], "some": [orders < 6], "all": [orders > 0]}[event.rdp_fault]
    for where in spoiled:
        curve = np.where(where, np.nan, curve)
    return curve


@privacy_profile.register
def _(event: Strange, accounting):
    clean = privacy_profile(Gaussian(noise_multiplier=1.0), accounting)
    if event.profile_fault == "missing":
        raise UnknownEventError("no profile")
    low, high = {"none": (9, 9), "some": (0.5, 1.5), "all": (-1, math.inf)}[event.profile_fault]

    def spoiled(e):
        return np.where((e > low) & (e < high), np.nan, clean.add(e))

    return Profile(add=spoiled, remove=clean.remove)


@pytest.mark.parametrize("calculus", ["best", "pld", "rdp"])
@pytest.mark.parametrize("profile_fault", ["none", "some", "all"])
@pytest.mark.parametrize("rdp_fault", ["none", "some", "all"])
def test_what_is_not_a_number_never_lowers_a_bound(calculus, rdp_fault, profile_fault):
    clean = epsilon([(Strange(), 2)], 1e-5, calculus=calculus)
    spoiled = epsilon(
        [(Strange(rdp_fault=rdp_fault, profile_fault=profile_fault), 2)], 1e-5, calculus=calculus
    )
    assert spoiled >= clean * (1 - 1e-9)
    if rdp_fault == profile_fault == "all":
        assert spoiled == math.inf


def test_an_event_known_to_one_calculus_is_accounted_by_that_one():
    only_pld, only_rdp = Strange(rdp_fault="missing"), Strange(profile_fault="missing")
    assert epsilon([(only_pld, 1)], 1e-5) == epsilon([(Strange(), 1)], 1e-5, calculus="pld")
    assert epsilon([(only_rdp, 1)], 1e-5) == epsilon([(Strange(), 1)], 1e-5, calculus="rdp")
    with pytest.raises(UnknownEventError, match="no RDP"):
        epsilon([(only_pld, 1)], 1e-5, calculus="rdp")
    with pytest.raises(UnknownEventError):
        epsilon([(only_pld, 1), (only_rdp, 1)], 1e-5)


def test_a_kind_without_bounds_is_refused_by_name():
    @dataclass(frozen=True, kw_only=True)
    class Unheard(Event):
        kind: ClassVar[str] = "unheard-of"

    with pytest.raises(UnknownEventError, match="unheard-of"):
        epsilon([(Unheard(), 1)], 1e-5)

"""Bounds move in the direction in which the mechanism does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Accounting, privacy_profile
from discreet.accounting.rdp import ORDERS, rdp_curve
from discreet.accounting.selective import GatedTrial
from discreet.accounting.selective.bound_a import separate_steps_rdp

FEW = np.array([1.5, 3.0, 8.0, 32.0])
EPSILONS = np.array([0.0, 0.01, 0.1, 0.5])
SLACK = 1.0 + 2e-3  # the precision that the searches stop at

rates = st.floats(1e-4, 1.0)
noises = st.floats(0.5, 20.0)
gate_rates = st.floats(0.0, 1.0)
gate_noises = st.floats(0.4, 3.0)
thresholds = st.floats(-2.0, 2.0)


def trial(rate, noise, gate_rate, gate_noise, threshold):
    return GatedTrial(
        sample_rate=rate,
        noise_multiplier=noise,
        gate_rate=gate_rate,
        gate_multiplier=gate_noise,
        gate_threshold=threshold,
    )


@given(
    rates,
    noises,
    gate_rates,
    gate_noises,
    thresholds,
    st.sampled_from(["visible", "hidden"]),
    st.integers(0, 2),
)
@settings(max_examples=30, deadline=None, derandomize=True)
def test_more_noise_and_smaller_batches_never_cost_more(
    rate, noise, gate_rate, gate_noise, threshold, sees, which
):
    costs = rdp_curve(trial(rate, noise, gate_rate, gate_noise, threshold), FEW, Accounting(sees))
    better = [
        (rate, noise * 1.3, gate_rate, gate_noise, threshold),
        (rate / 2, noise, gate_rate, gate_noise, threshold),
        (rate, noise, gate_rate / 2, gate_noise, threshold),
    ][which]
    cheaper = rdp_curve(trial(*better), FEW, Accounting(sees))
    assert np.all(np.isfinite(costs))
    assert np.all(cheaper <= costs * SLACK + 1e-11)


@given(rates, noises, gate_rates, gate_noises, thresholds)
@settings(max_examples=15, deadline=None, derandomize=True)
def test_hidden_costs_grow_with_the_order_and_lie_below_bound_a(
    rate, noise, gate_rate, gate_noise, threshold
):
    event = trial(rate, noise, gate_rate, gate_noise, threshold)
    orders = ORDERS[(ORDERS <= 64)][::6]
    curve = rdp_curve(event, orders, Accounting.HIDDEN)
    assert np.all(np.diff(curve) >= -1e-12 * curve[1:])
    loose = np.maximum(*separate_steps_rdp(event.law, event.acceptance, orders))
    assert np.all(curve <= loose * SLACK + 1e-11)


@given(rates, noises, gate_rates, gate_noises, thresholds, st.sampled_from(["visible", "hidden"]))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_profiles_fall_and_agree_at_zero(rate, noise, gate_rate, gate_noise, threshold, sees):
    profile = privacy_profile(trial(rate, noise, gate_rate, gate_noise, threshold), Accounting(sees))
    for curve in (profile.add(EPSILONS), profile.remove(EPSILONS)):
        assert np.all((curve >= 0.0) & (curve <= 1.0))
        assert np.all(np.diff(curve) <= 1e-12)
    # At epsilon 0 both are the total variation distance.
    assert profile.add(EPSILONS)[0] == pytest.approx(profile.remove(EPSILONS)[0], rel=3e-3, abs=1e-10)


@pytest.mark.parametrize("accounting", ["visible", "hidden"])
@pytest.mark.parametrize("rate", [0.0, 1.0])
@pytest.mark.parametrize("gate_rate", [0.0, 1.0])
@pytest.mark.parametrize("noise", [0.02, 1e4])
def test_extreme_settings_stay_finite_and_never_cheaper_than_their_parts(accounting, rate, gate_rate, noise):
    event = trial(rate, noise, gate_rate, 1.3, -1.0)
    orders = np.array([1.1, 2.0, 64.0, 512.0])
    curve = rdp_curve(event, orders, Accounting(accounting))
    assert np.all(np.isfinite(curve))
    if accounting == "hidden" and gate_rate == 0.0:
        plain = rate * orders / (2.0 * noise**2)
        assert np.all(curve >= plain * (1.0 - 1e-9))
    if rate == gate_rate == 0.0:
        assert np.all(curve <= 1e-10)


def test_too_little_noise_in_the_gate_is_refused_by_name_when_trials_are_hidden():
    with pytest.raises(ValueError, match="gate_multiplier"):
        rdp_curve(trial(0.1, 1.0, 0.1, 0.05, -1.0), FEW, Accounting.HIDDEN)
    assert np.all(np.isfinite(rdp_curve(trial(0.1, 1.0, 0.1, 0.05, -1.0), FEW, Accounting.VISIBLE)))


def test_claimed_accounting_is_refused_where_a_guarantee_is_asked_for():
    with pytest.raises(ValueError, match=r"selective\.claimed"):
        rdp_curve(trial(0.1, 1.0, 0.1, 1.0, -1.0), FEW, Accounting.CLAIMED)

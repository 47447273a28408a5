"""Without selection the bounds are those of the plain mechanism."""

import numpy as np
import pytest

from discreet.accounting import Accounting, privacy_profile
from discreet.accounting.events import PoissonGaussian
from discreet.accounting.rdp import ORDERS, rdp_curve
from discreet.accounting.selective import Acceptance, memory_multiplier, same_batch
from discreet.accounting.selective.corners import acceptance_corners
from discreet.accounting.selective.hidden import hidden_rdp
from discreet.accounting.selective.hidden_profile import hidden_profile
from discreet.accounting.selective.likelihood import LikelihoodRatio
from discreet.accounting.selective.powers import power_table
from discreet.accounting.selective.visible import exact_rdp, thinned_rdp
from discreet.accounting.selective.visible_profile import exact_profile

SETTINGS = [(0.01, 1.0), (0.16, 11.0), (0.5, 2.0), (1.0, 5.0)]
USEFUL = ORDERS[ORDERS <= 16]
EPSILONS = np.array([0.0, 1e-3, 0.01, 0.1, 0.5, 1.0, 3.0])


def constant(probability, rate=0.0):
    return Acceptance(
        sample_rate=rate,
        low=probability,
        high=probability,
        low_rejection=1.0 - probability,
        high_rejection=1.0 - probability,
    )


def plain(rate, sigma):
    return PoissonGaussian(sample_rate=rate, noise_multiplier=sigma)


@pytest.mark.parametrize(("rate", "sigma"), SETTINGS)
@pytest.mark.parametrize("gate", [constant(1.0), constant(0.3), constant(0.3, rate=0.4)])
def test_a_gate_that_does_not_look_costs_nothing_under_hidden_accounting(rate, sigma, gate):
    law, corners = LikelihoodRatio(rate, sigma), acceptance_corners(gate)
    expected = rdp_curve(plain(rate, sigma), USEFUL, Accounting.HIDDEN)
    np.testing.assert_allclose(np.maximum(*hidden_rdp(law, corners, USEFUL)), expected, rtol=0, atol=1e-9)
    profile, reference = hidden_profile(law, corners), privacy_profile(plain(rate, sigma), Accounting.HIDDEN)
    np.testing.assert_allclose(profile.add(EPSILONS), reference.add(EPSILONS), rtol=0, atol=1e-9)
    np.testing.assert_allclose(profile.remove(EPSILONS), reference.remove(EPSILONS), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("rate", "sigma"), SETTINGS)
def test_a_gate_that_always_accepts_is_the_plain_mechanism_under_visible_accounting(rate, sigma):
    law, gate = LikelihoodRatio(rate, sigma), constant(1.0 - 1e-12)
    expected = rdp_curve(plain(rate, sigma), USEFUL, Accounting.VISIBLE)
    reference = privacy_profile(plain(rate, sigma), Accounting.VISIBLE)
    np.testing.assert_allclose(thinned_rdp(law, constant(1.0), USEFUL), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        np.maximum(*exact_rdp(law, acceptance_corners(gate), USEFUL)), expected, rtol=1e-3, atol=1e-9
    )
    profile = exact_profile(law, acceptance_corners(gate))
    np.testing.assert_allclose(profile.add(EPSILONS), reference.add(EPSILONS), rtol=0, atol=1e-9)
    np.testing.assert_allclose(profile.remove(EPSILONS), reference.remove(EPSILONS), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("rate", "sigma"), SETTINGS)
def test_a_batch_gate_that_no_record_moves_is_the_plain_mechanism(rate, sigma):
    law = LikelihoodRatio(rate, sigma)
    expected = rdp_curve(plain(rate, sigma), USEFUL, Accounting.HIDDEN)
    reference = privacy_profile(plain(rate, sigma), Accounting.HIDDEN)
    np.testing.assert_allclose(
        np.maximum(*same_batch.hidden_rdp(law, 1.0, 1.0, USEFUL)), expected, rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(
        same_batch.hidden_profile(law, 1.0, 1.0).add(EPSILONS), reference.add(EPSILONS), atol=1e-9
    )


@pytest.mark.parametrize(("rate", "sigma"), SETTINGS)
def test_the_moments_behind_the_bounds_are_the_plain_ones_from_above(rate, sigma):
    moments = power_table(LikelihoodRatio(rate, sigma), ORDERS).log_scale
    expected = rdp_curve(plain(rate, sigma), ORDERS, Accounting.VISIBLE) * (ORDERS - 1.0)
    assert np.all(moments >= expected * (1.0 - 1e-12))
    small = ORDERS <= 10
    np.testing.assert_allclose(moments[small], expected[small], rtol=1e-5, atol=1e-10)
    np.testing.assert_allclose(moments, expected, rtol=3e-3, atol=1e-10)


@pytest.mark.parametrize("sigma", [0.05, 0.3])
def test_full_batches_with_little_noise_are_symmetric_far_into_the_losses(sigma):
    """Removing a record looks at ratios far below 1, where a distance from 1 has no digits left."""
    law, epsilons = (
        LikelihoodRatio(1.0, sigma),
        np.array([0.1, 1.0, 0.3 / sigma**2, 0.5 / sigma**2, 0.6 / sigma**2]),
    )
    for profile in (
        exact_profile(law, acceptance_corners(constant(1.0 - 1e-12))),
        hidden_profile(
            law,
            acceptance_corners(
                Acceptance(
                    sample_rate=0.0,
                    low=0.3,
                    high=0.3 * (1 + 1e-9),
                    low_rejection=0.7 - 3e-10,
                    high_rejection=0.7,
                )
            ),
        ),
        same_batch.hidden_profile(law, 1.0, 1.0),
    ):
        np.testing.assert_allclose(profile.remove(epsilons), profile.add(epsilons), rtol=3e-2)
        reference = privacy_profile(plain(1.0, sigma), Accounting.HIDDEN).remove(epsilons)
        assert np.all(profile.remove(epsilons) >= reference * (1.0 - 1e-9))


def test_a_memory_that_keeps_nothing_is_the_plain_multiplier():
    assert memory_multiplier(1.7, 1.0) == 1.7

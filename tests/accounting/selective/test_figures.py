"""The figures that the published settings are known to cost, at delta 1e-5."""

import numpy as np
import pytest

from discreet.accounting import Accounting, epsilon
from discreet.accounting.events import PoissonGaussian
from discreet.accounting.rdp import ORDERS, epsilon_from_rdp
from discreet.accounting.selective.bound_a import separate_steps_rdp
from discreet.accounting.selective.claimed import WHOLE_ORDERS, claimed_epsilon, claimed_releases
from discreet.accounting.selective.corners import acceptance_corners
from discreet.accounting.selective.events import BufferedRelease, GatedTrial, ScoredTrial
from discreet.accounting.selective.hidden import hidden_rdp
from discreet.accounting.selective.visible import exact_rdp, released_rdp, thinned_rdp

DELTA = 1e-5
UPDATES = {"mnist": 576, "fmnist": 651, "cifar10": 243}


@pytest.mark.parametrize("name", UPDATES)
def test_the_claimed_formula_allows_the_published_number_of_updates(published, name):
    assert claimed_releases(published[name], 1.0, DELTA) == UPDATES[name]
    assert claimed_epsilon([(published[name], UPDATES[name])], DELTA, orders=WHOLE_ORDERS) == pytest.approx(
        1.0, abs=1e-3
    )


@pytest.mark.parametrize(("name", "expected"), [("mnist", 1.57), ("fmnist", 1.57), ("cifar10", 1.49)])
def test_hidden_bound_a(published, name, expected):
    event = published[name]
    curve = np.maximum(*separate_steps_rdp(event.law, event.acceptance, WHOLE_ORDERS))
    assert epsilon_from_rdp(UPDATES[name] * curve, DELTA, WHOLE_ORDERS) == pytest.approx(expected, abs=9e-3)


@pytest.mark.parametrize(("name", "attained"), [("mnist", 1.2904), ("fmnist", 1.3201), ("cifar10", 1.3097)])
def test_hidden_bound_b_reaches_the_exact_value_from_above(published, name, attained):
    event = published[name]
    curve = np.maximum(*hidden_rdp(event.law, acceptance_corners(event.acceptance), WHOLE_ORDERS))
    bound = epsilon_from_rdp(UPDATES[name] * curve, DELTA, WHOLE_ORDERS)
    assert attained <= bound <= 1.002 * attained


@pytest.mark.parametrize(
    ("share", "released", "thinned", "exact"),
    [(0.0, 1.45, 1.18, 1.06), (0.5, 1.73, 1.40, 1.26), (1.0, 2.26, 1.83, 1.65)],
)
def test_visible_renyi_bounds_for_a_trial_of_dpsur_on_fmnist(published, share, released, thinned, exact):
    event = published["fmnist"]
    law, acceptance = event.law, event.acceptance
    trials = 651 / (acceptance.high + share * (acceptance.low - acceptance.high))
    bounds = [
        released_rdp(law, event.test_law, ORDERS),
        thinned_rdp(law, acceptance, ORDERS),
        np.maximum(*exact_rdp(law, acceptance_corners(acceptance), ORDERS)),
    ]
    costs = [epsilon_from_rdp(trials * bound, DELTA) for bound in bounds]
    assert costs == pytest.approx([released, thinned, exact], abs=6e-3)


@pytest.mark.parametrize(
    ("share", "released", "exact"), [(0.0, 1.32, 0.99), (0.5, 1.58, 1.18), (1.0, 2.07, 1.54)]
)
def test_visible_profiles_for_a_trial_of_dpsur_on_fmnist(published, share, released, exact):
    event = published["fmnist"]
    trials = round(646 / (event.acceptance.high + share * (event.acceptance.low - event.acceptance.high)))
    parts = [
        PoissonGaussian(sample_rate=law.sample_rate, noise_multiplier=law.noise_multiplier)
        for law in (event.law, event.test_law)
    ]
    assert epsilon([(part, trials) for part in parts], DELTA, calculus="pld") == pytest.approx(
        released, abs=8e-3
    )
    assert epsilon([(event, trials)], DELTA, calculus="pld") == pytest.approx(exact, abs=6e-3)


def test_the_exact_visible_bound_is_never_above_the_simple_ones(published):
    for event in published.values():
        exact = np.maximum(*exact_rdp(event.law, acceptance_corners(event.acceptance), WHOLE_ORDERS))
        thinned = thinned_rdp(event.law, event.acceptance, WHOLE_ORDERS)
        assert np.all(exact <= thinned * (1.0 + 1e-3))
        assert np.all(thinned <= released_rdp(event.law, event.test_law, WHOLE_ORDERS))


@pytest.mark.parametrize(
    ("batch", "sigma", "gate_multiplier", "examples", "with_a", "with_b"),
    [
        (1024, 3.0, 1.37, 60000, 2.53, 2.05),
        (2048, 6.0, 1.3, 60000, 2.60, 2.14),
        (8192, 14.0, 1.4, 50000, 2.32, 2.01),
    ],
)
def test_charging_both_candidates_of_dpsgd_br(batch, sigma, gate_multiplier, examples, with_a, with_b):
    event = GatedTrial(
        sample_rate=batch / examples,
        noise_multiplier=sigma,
        gate_rate=256 / examples,
        gate_multiplier=gate_multiplier,
        gate_threshold=-1.5,
    )
    twice = 2 * claimed_releases(event, 1.0, DELTA)
    loose = np.maximum(*separate_steps_rdp(event.law, event.acceptance, WHOLE_ORDERS))
    tight = np.maximum(*hidden_rdp(event.law, acceptance_corners(event.acceptance), WHOLE_ORDERS))
    assert epsilon_from_rdp(twice * loose, DELTA, WHOLE_ORDERS) == pytest.approx(with_a, abs=0.06)
    assert epsilon_from_rdp(twice * tight, DELTA, WHOLE_ORDERS) == pytest.approx(with_b, abs=0.03)


def test_an_event_costs_the_smallest_of_its_bounds_under_each_accounting(published):
    event = published["cifar10"]
    hidden = epsilon([(event, 243)], DELTA, accounting=Accounting.HIDDEN)
    assert 1.28 < hidden < 1.31
    assert epsilon([(event, 486)], DELTA) < hidden
    scored = ScoredTrial(**{k: v for k, v in event.to_json().items() if k != "kind"})
    assert epsilon([(event, 486)], DELTA) < epsilon([(scored, 486)], DELTA)
    choice = BufferedRelease(**{k: v for k, v in event.to_json().items() if k != "kind"})
    assert hidden < epsilon([(choice, 243)], DELTA, accounting="hidden") < 2.2

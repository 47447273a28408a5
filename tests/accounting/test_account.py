import math

import pytest

from discreet.accounting import mechanisms
from discreet.accounting.account import account, most_within, noise_for, rate
from discreet.accounting.budget import Accounting, Budget
from discreet.accounting.composition import epsilon
from discreet.accounting.events import PoissonGaussian
from discreet.errors import UserError

BUDGET = Budget(epsilon=1.0, delta=1e-5)
PLAIN = {"sample_rate": 0.01, "noise_multiplier": 1.5}
GATE = {"gate_rate": 256 / 60_000, "gate_multiplier": 1.3}
FMNIST = {"sample_rate": 2048 / 60_000, "noise_multiplier": 4.0, **GATE}

EVERY_MECHANISM = [
    mechanisms.dp_sgd(**PLAIN),
    mechanisms.same_batch(sample_rate=0.01, noise_multipliers=[1.5, 2.0]),
    mechanisms.memory(**PLAIN, fresh_weight=0.9, groups=4),
    mechanisms.noisy_selection(sample_rate=0.01, pure_epsilon=0.3),
    mechanisms.gated(**FMNIST),
    mechanisms.annealed(**FMNIST, coldness=2.0),
    mechanisms.batch_gated(**PLAIN, gate_multiplier=1.3, gate_threshold=-1.0),
    mechanisms.buffered(**FMNIST),
    mechanisms.buffered(**FMNIST, candidates=1),
]


def test_a_plain_mechanism_costs_the_same_whoever_watches():
    found = account(mechanisms.dp_sgd(**PLAIN), releases=1000, delta=1e-5)
    assert found.visible == ((1000, epsilon([(PoissonGaussian(**PLAIN), 1000)], 1e-5)),)
    assert found.hidden == found.visible[0][1]


@pytest.mark.parametrize("mechanism", EVERY_MECHANISM, ids=lambda mechanism: mechanism.name)
def test_every_mechanism_is_answered_under_every_accounting(mechanism):
    found = account(mechanism, releases=20, delta=1e-5)
    figures = [found.hidden, *(spent for _, spent in found.visible)]
    assert all(0 < figure < 20 and math.isfinite(figure) for figure in figures)
    assert list(found.visible) == sorted(found.visible), "more trials cost more"
    text = found.table()
    assert "epsilon, visible" in text
    assert "epsilon, hidden" in text
    assert ("not a guarantee" in text) == (found.claimed is not None)


def test_dpsurs_fashion_mnist_setting_costs_what_the_theory_page_says():
    found = account(mechanisms.gated(**FMNIST), releases=646, delta=1e-5)
    assert [round(spent, 2) for _, spent in found.visible] == [0.99, 1.18, 1.54]
    assert found.hidden == pytest.approx(1.32, rel=0.01)
    assert found.claimed < 1.0


def test_dp_sam_takes_two_gaussians_from_one_batch():
    mechanism = mechanisms.same_batch(sample_rate=0.02, noise_multipliers=[1.0, 1.0])
    assert account(mechanism, releases=1000, delta=1e-5).hidden == pytest.approx(8.83, abs=0.01)


@pytest.mark.parametrize(("groups", "multiplier"), [(4, 0.526), (8, 0.372), (21, 0.230)])
def test_layer_groups_share_one_multiplier(groups, multiplier):
    event = mechanisms.memory(sample_rate=0.01, noise_multiplier=1.0, fresh_weight=0.95, groups=groups).trial
    assert event.noise_multiplier == pytest.approx(multiplier, abs=5e-4)


def test_a_buffer_of_one_is_the_gate():
    gate, buffer = mechanisms.gated(**FMNIST), mechanisms.buffered(**FMNIST, candidates=1)
    assert (buffer.trial, buffer.release) == (gate.trial, gate.release)


@pytest.mark.parametrize("accounting", [Accounting.VISIBLE, Accounting.HIDDEN])
def test_the_noise_for_a_budget_keeps_it_and_is_not_wasteful(accounting):
    def with_noise(noise):
        return mechanisms.gated(**{**FMNIST, "noise_multiplier": noise})

    mechanism = noise_for(with_noise, count=500, budget=BUDGET, accounting=accounting)
    event = mechanism.trial if accounting is Accounting.VISIBLE else mechanism.release
    assert 0.99 <= epsilon([(event, 500)], BUDGET.delta, accounting=accounting) <= 1.0


@pytest.mark.parametrize("accounting", [Accounting.VISIBLE, Accounting.HIDDEN])
def test_one_more_than_the_most_would_overshoot(accounting):
    mechanism = mechanisms.gated(**FMNIST)
    most = most_within(mechanism, budget=BUDGET, accounting=accounting)
    assert epsilon([(mechanism.trial, most)], BUDGET.delta, accounting=accounting) <= 1.0
    assert epsilon([(mechanism.trial, most + 1)], BUDGET.delta, accounting=accounting) > 1.0


def test_fewer_trials_than_releases_are_refused():
    with pytest.raises(UserError, match="take at least 40"):
        account(mechanisms.buffered(**FMNIST), releases=20, trials=30, delta=1e-5)


def test_a_gate_that_never_accepts_asks_for_the_trials():
    never = mechanisms.gated(**{**FMNIST, "gate_multiplier": 0.01, "gate_threshold": 0.0})
    with pytest.raises(ValueError, match="may never be accepted"):
        account(never, releases=20, delta=1e-5)


def test_the_rate_is_given_or_follows_from_the_batch():
    assert rate(sample_rate=0.25) == 0.25
    assert rate(batch=256, examples=60_000) == 256 / 60_000
    for wrong in ({}, {"batch": 3.0}, {"sample_rate": 0.1, "batch": 2.0, "examples": 4}):
        with pytest.raises(UserError, match="give either the sample rate"):
            rate(**wrong)
    with pytest.raises(UserError, match="between 0 and the 10 examples, not 11"):
        rate(batch=11, examples=10)


def test_printed_bounds_are_rounded_up():
    found = account(mechanisms.dp_sgd(**PLAIN), releases=1000, delta=1e-5)
    (line,) = [line for line in found.table().splitlines() if line.startswith("epsilon, visible")]
    assert float(line.split()[-1]) >= found.visible[0][1]

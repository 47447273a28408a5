import pytest

from discreet.accounting.account import account_for, epsilon_for, noise_for, rate, releases_for
from discreet.accounting.budget import Budget
from discreet.accounting.composition import epsilon
from discreet.accounting.events import PoissonGaussian
from discreet.errors import UserError

BUDGET = Budget(epsilon=1.0, delta=1e-5)


def test_the_cost_of_given_parameters():
    found = epsilon_for(sample_rate=0.01, noise_multiplier=1.5, releases=1000, delta=1e-5)
    expected = epsilon([(PoissonGaussian(sample_rate=0.01, noise_multiplier=1.5), 1000)], 1e-5)
    assert found.visible == found.hidden == expected
    assert found.claimed is None


def test_the_noise_for_a_budget_keeps_it():
    found = noise_for(sample_rate=0.01, releases=1000, budget=BUDGET)
    assert 0.99 <= found.visible <= 1.0
    assert found.releases == 1000


def test_the_releases_for_a_budget_keep_it():
    found = releases_for(sample_rate=0.01, noise_multiplier=1.5, budget=BUDGET)
    assert found.visible <= 1.0
    assert account_for(found.event, found.releases + 1, 1e-5).visible > 1.0


def test_the_rate_is_given_or_follows_from_the_batch():
    assert rate(sample_rate=0.25) == 0.25
    assert rate(batch=256, examples=60_000) == 256 / 60_000
    for wrong in ({}, {"batch": 3.0}, {"sample_rate": 0.1, "batch": 2.0, "examples": 4}):
        with pytest.raises(UserError, match="give either the sample rate"):
            rate(**wrong)
    with pytest.raises(UserError, match="between 0 and the 10 examples, not 11"):
        rate(batch=11, examples=10)


def test_the_table_lists_every_accounting_and_rounds_up():
    event = PoissonGaussian(sample_rate=0.01, noise_multiplier=1.5)
    found = account_for(event, 1000, 1e-5, claimed=0.50001)
    lines = found.table().splitlines()
    assert lines[0].split() == ["event", "poisson-gaussian"]
    (visible,) = [line for line in lines if line.startswith("epsilon, visible")]
    assert float(visible.split()[-1]) >= found.visible
    assert lines[-1] == "epsilon, claimed  0.5001  (not a guarantee)"

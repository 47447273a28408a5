"""Planner, caps, memory, published table, JSON."""

import math

import pytest

from discreet.accounting import Budget, epsilon, event_from_json
from discreet.accounting.selective import (
    AnnealedTrial,
    BatchGatedTrial,
    BufferedRelease,
    GatedTrial,
    ScoredTrial,
    SelectiveRun,
    capped_delta,
    cost,
    cost_table,
    grouped_memory_multiplier,
    memory_multiplier,
    plan_run,
    published_settings,
    required_noise_multiplier,
    trial_cap,
)

GATE = {"gate_rate": 0.01, "gate_multiplier": 1.3}
EVENTS = [
    GatedTrial(sample_rate=0.1, noise_multiplier=2.0, gate_threshold=-1.0, **GATE),
    ScoredTrial(sample_rate=0.1, noise_multiplier=2.0, gate_threshold=-1.0, **GATE),
    AnnealedTrial(sample_rate=0.1, noise_multiplier=2.0, coldness=0.5, **GATE),
    BufferedRelease(
        sample_rate=0.1, noise_multiplier=2.0, gate_threshold=-1.0, candidates=3, charge_all=True, **GATE
    ),
    BatchGatedTrial(
        sample_rate=0.1, noise_multiplier=2.0, gate_multiplier=1.0, gate_threshold=0.0, one_sided=True
    ),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_events_survive_json_to_the_last_bit(event):
    assert event_from_json(event.to_json()) == event


def run(accounting, **changes):
    settings = {
        "examples": 60000,
        "batch": 2048,
        "noise_multiplier": 4.0,
        "gate_batch": 256,
        "gate_multiplier": 1.3,
        "count": 400,
    }
    return SelectiveRun(**(settings | changes), accounting=accounting)


@pytest.mark.parametrize("unknown", ["count", "noise_multiplier", "gate_batch"])
def test_a_hidden_plan_is_tight_and_never_overshoots_with_its_cap_included(unknown):
    budget = Budget(epsilon=1.2, delta=1e-5)
    plan = plan_run(run("hidden"), budget, unknown)
    assert 0.99 * budget.epsilon <= plan.epsilon <= budget.epsilon
    assert plan.run.epsilon(plan.composed_delta) == plan.epsilon
    total = capped_delta(
        epsilon=plan.epsilon,
        delta=plan.composed_delta,
        lowest_acceptance=plan.run.event.acceptance.low,
        releases=plan.run.count,
        cap=plan.cap,
    )
    assert plan.composed_delta < total <= budget.delta


@pytest.mark.parametrize("unknown", ["count", "gate_multiplier", "gate_threshold"])
def test_a_visible_plan_is_tight_and_never_overshoots(unknown):
    budget = Budget(epsilon=1.3, delta=1e-5)
    plan = plan_run(run("visible", count=1800), budget, unknown)
    assert 0.985 * budget.epsilon <= plan.epsilon <= budget.epsilon
    assert plan.cap is None


def test_one_more_than_a_planned_count_would_overshoot():
    budget = Budget(epsilon=1.3, delta=1e-5)
    plan = plan_run(run("visible"), budget, "count")
    assert run("visible", count=plan.run.count + 1).epsilon(budget.delta) > budget.epsilon


def test_an_unknown_that_is_none_is_refused_by_name():
    with pytest.raises(ValueError, match="unknown must be one of"):
        plan_run(run("visible"), Budget(epsilon=1.0, delta=1e-5), "batch")


def test_a_cap_keeps_its_price_below_a_thousandth_of_delta():
    cap = trial_cap(epsilon=2.0, delta=1e-5, lowest_acceptance=0.22, releases=600)
    price = (1.0 + math.exp(2.0)) * 600 * 0.78**cap
    assert price <= 1e-8 < price / 0.78
    assert capped_delta(
        epsilon=2.0, delta=1e-5, lowest_acceptance=0.22, releases=600, cap=cap
    ) == pytest.approx(1e-5 + price)


def test_a_schedule_of_many_different_trials_is_accounted_on_a_grid_that_never_costs_less():
    """The visible cost of a decaying schedule lies between those of its mildest and its strictest trial."""

    def event(noise):
        return GatedTrial(sample_rate=0.1, noise_multiplier=noise, gate_threshold=-1.0, **GATE)

    schedule = [(event(4.0 * 0.999**i), 1) for i in range(200)]
    first, last = (
        epsilon([(trial, 200)], 1e-5, calculus="rdp") for trial in (schedule[0][0], schedule[-1][0])
    )
    whole = epsilon(schedule, 1e-5, calculus="rdp")
    halves = epsilon([(event(4.0 * 0.999**100), 200)], 1e-5, calculus="rdp")
    assert first < whole < last
    assert halves <= whole <= 1.06 * halves


def test_no_acceptance_probability_needs_no_cap_or_refuses():
    assert trial_cap(epsilon=1.0, delta=1e-5, lowest_acceptance=1.0, releases=10) == 1
    with pytest.raises(ValueError, match="lowest_acceptance"):
        trial_cap(epsilon=1.0, delta=1e-5, lowest_acceptance=0.0, releases=10)


def test_memory_is_plain_noise_over_the_fresh_weight():
    assert memory_multiplier(1.0, 0.5) == 2.0
    for groups, effective in ((4, 0.526), (8, 0.372), (21, 0.230)):
        assert grouped_memory_multiplier([1.0] * groups, 0.95) == pytest.approx(effective, abs=6e-4)
        assert required_noise_multiplier(effective, 0.95, groups) == pytest.approx(1.0, abs=3e-3)
    assert grouped_memory_multiplier([1.0, 2.0], 1.0) == pytest.approx(1.0 / math.sqrt(1.25))
    with pytest.raises(ValueError, match="fresh_weight"):
        memory_multiplier(1.0, 0.0)


def test_every_published_setting_is_there_once():
    settings = published_settings()
    names = [(each.method, each.dataset, each.claimed_epsilon) for each in settings]
    assert len(names) == len(set(names)) == 20


def test_the_published_cost_of_dpsur_on_fmnist():
    setting = next(
        each for each in published_settings() if (each.dataset, each.claimed_epsilon) == ("FMNIST", 1.0)
    )
    what = cost(setting)
    assert what.updates == 651
    assert what.visible == pytest.approx((0.99, 1.18, 1.55), abs=0.01)
    assert what.hidden == pytest.approx(1.32, abs=0.005)
    table = cost_table([what])
    assert "| DPSUR | FMNIST | 651 | 1.00 |" in table
    assert "no guarantee" in table

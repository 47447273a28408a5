import json

import numpy as np
import pytest

from discreet import schedules
from discreet.accounting import Budget, PoissonGaussian, epsilon
from discreet.accounting.rdp import certified_rdp
from discreet.errors import UserError
from discreet.recipes import DPSGD, DPSGDBR, RECIPES, find
from discreet.schedules import Phase

BUDGET = Budget(epsilon=2.0, delta=1e-5)
RECIPE = DPSGD(expected_batch_size=100, releases=200)


def test_open_noise_is_calibrated_to_the_budget_and_never_above_it():
    plan = RECIPE.plan(1000, BUDGET)
    assert 0.99 * BUDGET.epsilon <= plan.epsilon() <= BUDGET.epsilon


def test_open_releases_are_as_many_as_the_budget_holds_and_not_one_more():
    plan = DPSGD(expected_batch_size=100, noise_multiplier=2.0).plan(1000, BUDGET)
    event = plan.event(0)
    assert epsilon([(event, plan.releases)], BUDGET.delta) <= BUDGET.epsilon
    assert epsilon([(event, plan.releases + 1)], BUDGET.delta) > BUDGET.epsilon


def test_a_plan_that_would_overshoot_is_refused():
    with pytest.raises(UserError, match="more than the budget of 2"):
        DPSGD(expected_batch_size=100, releases=5000, noise_multiplier=1.0).plan(1000, BUDGET)


def test_a_budget_too_small_for_one_release_is_refused():
    with pytest.raises(UserError, match="not even one release"):
        DPSGD(expected_batch_size=1000, noise_multiplier=0.3).plan(1000, BUDGET)


def test_the_event_is_made_of_the_parts_own_facts():
    plan = RECIPE.plan(1000, BUDGET)
    assert plan.event(3) == PoissonGaussian(sample_rate=0.1, noise_multiplier=plan.noise.multiplier)


def test_layer_wise_clipping_is_charged_as_one_gaussian_of_the_joint_sensitivity():
    flat = RECIPE.plan(1000, BUDGET)
    layered = DPSGD(expected_batch_size=100, releases=200, clipping="layer-wise").plan(1000, BUDGET)
    assert layered.charges() == flat.charges()
    assert layered.clipping.rule.sensitivity == flat.clipping.rule.sensitivity


def test_a_noise_schedule_is_charged_release_by_release():
    recipe = DPSGD(expected_batch_size=100, releases=50, noise_schedule=schedules.Step(every=20, factor=0.5))
    plan = recipe.plan(1000, BUDGET)
    multipliers = [(event.noise_multiplier / plan.noise.multiplier, count) for event, count in plan.charges()]
    assert multipliers == [(1.0, 20), (0.5, 20), (0.25, 10)]
    assert 0.99 * BUDGET.epsilon <= plan.epsilon() <= BUDGET.epsilon


def test_a_clip_schedule_moves_the_sensitivity_and_costs_nothing():
    plan = DPSGD(expected_batch_size=100, releases=50, clip_schedule=schedules.Linear(end=0.1)).plan(
        1000, BUDGET
    )
    assert plan.clipping.at(0, 50).sensitivity == pytest.approx(1.0)
    assert plan.clipping.at(49, 50).sensitivity == pytest.approx(0.1)
    assert plan.charges() == DPSGD(expected_batch_size=100, releases=50).plan(1000, BUDGET).charges()


def test_epochs_are_releases_times_the_sample_rate():
    assert DPSGD(expected_batch_size=100, epochs=7).plan(1000, BUDGET).releases == 70


def test_two_plans_have_one_digest_only_if_they_are_the_same():
    assert RECIPE.plan(1000, BUDGET).digest() == RECIPE.plan(1000, BUDGET).digest()
    assert RECIPE.plan(1000, BUDGET).digest() != RECIPE.plan(1001, BUDGET).digest()


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_survives_being_written_down(name):
    recipe = find(name)(expected_batch_size=50, noise_schedule=schedules.Cosine(end=0.5), average=0.9)
    record = json.loads(json.dumps(recipe.to_json()))
    assert find(name).from_json(record) == recipe


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"expected_batch_size": 2000}, "only 1000 records"),
        ({"expected_batch_size": 0}, "expected_batch_size is 0"),
        ({"expected_batch_size": 2.5}, "whole number"),
        ({"epochs": 3.0, "releases": 10}, "give one of them"),
        ({"epochs": -1.0}, "epochs is -1"),
        ({"releases": 0}, "releases is 0"),
        ({"noise_multiplier": 0.0}, "noise_multiplier is 0"),
        ({"noise_multiplier": float("nan")}, "noise_multiplier is nan"),
        ({"clip_norm": float("inf")}, "clip_norm is inf"),
        ({"learning_rate": "fast"}, "learning_rate is 'fast'"),
        ({"clipping": "loose"}, "clipping is 'loose'"),
        ({"average": 1.0}, "average is 1.0"),
        ({"noise_multiplier": 1.0, "noise_schedule": "linear:end=0.5"}, "needs releases or epochs"),
        ({"learning_rate_schedule": "linear"}, "end"),
        ({"speed": 3}, "no setting 'speed'"),
    ],
)
def test_bad_settings_are_refused_with_the_reason(settings, complaint):
    with pytest.raises(UserError, match=complaint):
        DPSGD.from_json(settings).plan(1000, BUDGET)


def test_an_unknown_recipe_is_refused_with_the_list():
    with pytest.raises(UserError, match="dp-sgd, dp-adam"):
        find("dp-magic")


def test_the_order_of_a_decaying_run_is_the_one_at_which_it_makes_most_trials():
    """Walked trial by trial at a few orders, as a run does that decays slowly."""
    recipe = DPSGDBR(**DPSGDBR.presets["mnist"][1.0], slow_decay=0.99)
    plan = recipe.plan(60_000, Budget(epsilon=1.0, delta=1e-5))
    gate, decay = plan.event(0), plan.selecting.decay
    per_update = 2.0 / ((gate.lowest_acceptance + gate.highest_acceptance) / 2.0)
    orders = np.array([6.0, 10.0, plan.order, 24.0])
    room = 1.0 - np.log1p(-1.0 / orders) + np.log(1e-5 * orders) / (orders - 1.0)
    costs = {}

    def cost(factor):
        factor = round(factor, 2)  # a hundred different phases are enough
        if factor not in costs:
            phase = Phase(noise=factor, gate_threshold=factor, learning_rate=factor)
            costs[factor] = certified_rdp(plan.event(0, phase), orders, plan.accounting)
        return costs[factor]

    spent, made = np.zeros(4), np.zeros(4)
    for trial in range(3000):
        spent = spent + cost(max(decay.floor, decay.slow ** (trial / per_update)))
        made += spent <= room
    assert made.argmax() == 2
    assert made[2] > 1.2 * made[1]


def test_a_decaying_run_that_cannot_even_begin_is_refused():
    with pytest.raises(UserError, match=r"not even one trial keeps epsilon 0\.01"):
        DPSGDBR(noise_multiplier=1.0, releases=10).plan(1000, Budget(epsilon=0.01, delta=1e-5))

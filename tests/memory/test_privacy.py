"""What a memory costs: the plain release at sigma / beta, for each layer and for all of them together."""

import dp_accounting
import pytest
import torch
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from torch import nn

from discreet import start
from discreet.accounting import Budget, PoissonGaussian, epsilon
from discreet.data import Records
from discreet.errors import UserError
from discreet.memory.recollection import Recollection
from discreet.noise.gaussian import Released
from discreet.plan import Plan
from discreet.recipes import DPSGD, FODPSGD, SMADPSGD, DPAdam, PostFMDPSGD
from discreet.schedules import Exponential, Step
from discreet.training import run as run_module

EXAMPLES, FEATURES, GROUPS, RELEASES = 20, 6, 2, 7
BUDGET = Budget(epsilon=1e5, delta=1e-5)
SIZES = {
    "expected_batch_size": EXAMPLES,
    "releases": RELEASES,
    "noise_multiplier": 1.5,
    "clip_norm": 0.7,
    "learning_rate": 1e-12,
    "fresh_weight": 0.6,
}
RECIPES = {
    "fo": FODPSGD(**SIZES),
    "fo-scheduled": FODPSGD(**SIZES, noise_schedule=Step(every=3), clip_schedule=Exponential(end=0.2)),
    "post": PostFMDPSGD(**SIZES),
    "sma-flat": SMADPSGD(**SIZES, clipping="flat", spectrum_every=1, warm_up=1.0),
    "sma-layer-wise": SMADPSGD(**SIZES, spectrum_every=1, warm_up=1.0),
    "sma-group-scheduled": SMADPSGD(
        **SIZES, warm_up=1.0, clipping="group-wise", groups=GROUPS, clip_schedule=Exponential(end=0.2)
    ),
    "sma-group-wise": SMADPSGD(**SIZES, spectrum_every=1, warm_up=1.0, clipping="group-wise", groups=GROUPS),
}
REMEMBERING = [name for name in RECIPES if name != "post"]


def records(*, canary: bool) -> Records:
    """The first record has a gradient beyond every clip norm in every layer, or none at all."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(EXAMPLES, FEATURES, generator=generator)
    inputs[0] = 100.0 if canary else 0.0
    return Records.from_arrays(inputs, torch.arange(EXAMPLES) % 2, classes=2)


def network() -> nn.Module:
    """Two layers without biases, wrong about the canary: no input, no gradient."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 5, bias=False), nn.Linear(5, 2, bias=False))
    with torch.no_grad():
        right = model(torch.full((1, FEATURES), 100.0)).diff().item() < 0
        if right:
            model[1].weight.neg_()
    return model


class World:
    """A run of whose noisy releases all but the last come from a script, where there is one."""

    def __init__(self, monkeypatch, recipe, *, canary: bool, script=()) -> None:
        plan = recipe.plan(EXAMPLES, BUDGET)
        run = start(network(), records(canary=canary), plan, seed=1)
        self.noisy = []
        right = run_module.add_gaussian_

        def scripted(vector, stddev, stream):
            self.sum = vector.clone()
            number = len(self.noisy)
            right(vector, stddev, stream)
            if number < len(script):
                vector.copy_(script[number])
            self.noisy.append(vector.clone())
            return Released(vector)

        with monkeypatch.context() as patch:
            patch.setattr(run_module, "add_gaussian_", scripted)
            for _ in run:
                pass
        self.run, self.last = run, run.state.gradient.double() * EXAMPLES


def conditional_sensitivity(monkeypatch, recipe) -> float:
    """How far one record moves the last release, in deviations of its noise, when all before it were the same."""
    with_canary = World(monkeypatch, recipe, canary=True)
    without = World(monkeypatch, recipe, canary=False, script=with_canary.noisy[:-1])
    moved = float((with_canary.last - without.last).norm())
    plan, last = with_canary.run.plan, RELEASES - 1
    rule = plan.clipping.at(last, RELEASES)
    return moved / (plan.noise.multiplier_at(last) * rule.sensitivity)


def charged(recipe) -> float:
    """The sensitivity over noise of the last release, as the plan charges it."""
    return 1.0 / recipe.plan(EXAMPLES, BUDGET).event(RELEASES - 1).noise_multiplier


@pytest.mark.parametrize("name", REMEMBERING)
def test_one_record_moves_one_release_by_beta_times_its_clipped_share_and_no_more(monkeypatch, name):
    recipe = RECIPES[name]
    found = conditional_sensitivity(monkeypatch, recipe)
    assert found == pytest.approx(charged(recipe), rel=1e-4)
    assert found == pytest.approx(
        recipe.fresh_weight / recipe.plan(EXAMPLES, BUDGET).noise.multiplier_at(6), rel=1e-4
    )


def test_after_the_release_the_blend_weighs_noise_and_record_alike(monkeypatch):
    recipe = RECIPES["post"]
    assert conditional_sensitivity(monkeypatch, recipe) == pytest.approx(0.6 * charged(recipe), rel=1e-4)


@pytest.mark.parametrize("name", REMEMBERING)
def test_a_memory_of_sums_without_noise_is_noticed(monkeypatch, name):
    """The planted fault: what is remembered is what there was before the noise."""
    worlds = []
    right = World.__init__

    def noticed(self, *arguments, **settings):
        worlds.append(self)
        right(self, *arguments, **settings)

    monkeypatch.setattr(World, "__init__", noticed)
    remember = Recollection.remember
    monkeypatch.setattr(
        Recollection, "remember", lambda self, release: remember(self, Released(worlds[-1].sum / EXAMPLES))
    )
    assert conditional_sensitivity(monkeypatch, RECIPES[name]) > 1.01 * charged(RECIPES[name])


@pytest.mark.parametrize("name", REMEMBERING)
def test_a_sum_that_enters_with_its_full_weight_is_noticed(monkeypatch, name):
    """The planted fault: the loop forgets beta, and the plan charges for it."""
    expected = charged(RECIPES[name])
    monkeypatch.setattr(Plan, "sum_weight", property(lambda self: 1.0))
    assert conditional_sensitivity(monkeypatch, RECIPES[name]) > 1.01 * expected


@pytest.mark.parametrize("name", [*REMEMBERING, "post"])
def test_whoever_sees_the_noisy_sums_can_compute_all_that_is_remembered(monkeypatch, name):
    """The memory is a function of releases: replayed on them alone it gives the same."""
    world = World(monkeypatch, RECIPES[name], canary=True)
    memory = world.run.plan.memory
    replayed = memory.start(world.run.layout)
    weights = Released(world.run.layout.flatten(network()))
    for noisy in world.noisy:
        blend = Released(noisy / EXAMPLES)
        memory.blend_(blend, replayed, weights=weights)
    torch.testing.assert_close(blend.double() * EXAMPLES, world.last)


def test_group_wise_clipping_is_charged_jointly_and_the_ratio_of_one_group_is_too_small(monkeypatch):
    """The planted fault: sigma / beta of one group, taken for the model's, is exceeded by the square root of G."""
    recipe = RECIPES["sma-group-wise"]
    plan = recipe.plan(EXAMPLES, BUDGET)
    assert plan.plain_multiplier_at(0) == pytest.approx(1.5 / (0.6 * GROUPS**0.5))
    of_one_group = 0.6 / 1.5
    found = conditional_sensitivity(monkeypatch, recipe)
    assert found == pytest.approx(of_one_group * GROUPS**0.5, rel=1e-4)
    assert found > 1.01 * of_one_group


def test_group_wise_and_layer_wise_are_the_same_mechanism_in_other_units(monkeypatch):
    joint = SMADPSGD(
        **{**SIZES, "noise_multiplier": 1.5 / GROUPS**0.5, "clip_norm": 0.7 * GROUPS**0.5},
        spectrum_every=1,
        warm_up=1.0,
    )
    one, other = (World(monkeypatch, each, canary=True) for each in (RECIPES["sma-group-wise"], joint))
    torch.testing.assert_close(one.last, other.last)


def test_a_model_with_another_number_of_layers_is_refused():
    plan = SMADPSGD(**SIZES, clipping="group-wise", groups=3).plan(EXAMPLES, BUDGET)
    with pytest.raises(UserError, match="groups is 3, and the model has 2 layers"):
        start(network(), records(canary=False), plan, seed=1)


def second_source(rate: float, multiplier: float, releases: int) -> float:
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(multiplier))
    return accountant.compose(event, releases).get_epsilon(1e-5)


@pytest.mark.parametrize("beta", [1.0, 0.9, 0.7, 0.5])
@pytest.mark.parametrize("groups", [None, 4, 21])
def test_the_plans_epsilon_is_that_of_plain_dp_sgd_at_the_effective_multiplier(beta, groups):
    sigma = 1.2 if groups is None else 1.2 * groups**0.5
    recipe = SMADPSGD(
        expected_batch_size=100,
        releases=300,
        noise_multiplier=sigma,
        fresh_weight=beta,
        clipping="flat" if groups is None else "group-wise",
        groups=groups,
    )
    plan = recipe.plan(10_000, Budget(epsilon=50.0, delta=1e-5))
    multiplier = sigma / (beta * (groups or 1) ** 0.5)
    assert plan.event(0) == PoissonGaussian(sample_rate=0.01, noise_multiplier=plan.plain_multiplier_at(0))
    assert plan.plain_multiplier_at(0) == pytest.approx(multiplier)
    assert plan.epsilon() == pytest.approx(second_source(0.01, multiplier, 300), rel=2e-3)


def test_what_is_left_open_is_calibrated_to_the_effective_multiplier():
    shared = {"expected_batch_size": 100, "releases": 300}
    budget = Budget(epsilon=2.0, delta=1e-5)
    plain = DPSGD(**shared).plan(10_000, budget)
    for beta in (0.9, 0.5):
        plan = FODPSGD(**shared, fresh_weight=beta).plan(10_000, budget)
        assert plan.noise.multiplier == pytest.approx(beta * plain.noise.multiplier, rel=1e-3)
        assert 0.99 * budget.epsilon <= plan.epsilon() <= budget.epsilon
    after = PostFMDPSGD(**shared, fresh_weight=0.5).plan(10_000, budget)
    assert after.noise.multiplier == plain.noise.multiplier


@pytest.mark.parametrize("name", RECIPES)
def test_a_matched_comparison_costs_the_same_release_by_release(name):
    plan = RECIPES[name].plan(EXAMPLES, BUDGET)
    plain = RECIPES[name].matched(plan)
    assert isinstance(plain, DPSGD)
    matched = plain.plan(EXAMPLES, BUDGET)
    assert matched.memory is None
    assert matched.sampler == plan.sampler
    assert matched.clipping.at(6, 7).sensitivity == plan.clipping.at(6, 7).sensitivity
    pairs = zip(matched.charges(), plan.charges(), strict=True)
    for (one, count), (other, others) in pairs:
        assert one.noise_multiplier == pytest.approx(other.noise_multiplier)
        assert count == others


def test_a_matched_comparison_of_a_calibrated_plan_keeps_within_the_budget_and_its_optimizer():
    budget = Budget(epsilon=2.0, delta=1e-5)
    recipe = FODPSGD(expected_batch_size=100, epochs=3, torch_optimizer="Adam", fresh_weight=0.7)
    plan = recipe.plan(10_000, budget)
    plain = recipe.matched(plan)
    assert isinstance(plain, DPAdam)
    assert plain.plan(10_000, budget).epsilon() == plan.epsilon()


def test_the_marginal_curve_is_below_the_guarantee_and_that_of_one_group_alone():
    plan = SMADPSGD(expected_batch_size=100, releases=300, clipping="group-wise", groups=9).plan(
        10_000, Budget(epsilon=2.0, delta=1e-5)
    )
    alone = PoissonGaussian(sample_rate=0.01, noise_multiplier=3 * plan.plain_multiplier_at(0))
    assert plan.marginal_epsilon(300, 9) == pytest.approx(epsilon([(alone, 300)], 1e-5, calculus="rdp"))
    assert plan.marginal_epsilon(300, 9) < 0.5 * plan.epsilon()
    assert plan.marginal_epsilon(300, 1) == plan.claimed() >= plan.epsilon()

"""FO-DP-SGD and Post-FM-DP-SGD: the same filter, before the noise and after the release."""

from dataclasses import replace

import pytest
import torch

from discreet.errors import UserError
from discreet.memory import FilteringMemory, Kernel
from discreet.recipes import DPSGD, FODPSGD, PostFMDPSGD
from discreet.schedules import Exponential, Step

SIZES = {"expected_batch_size": 30, "releases": 14, "learning_rate": 0.7, "clip_norm": 0.8}
NOISY = {**SIZES, "noise_multiplier": 1.2}
BETA = 0.6


def memory(**settings) -> FilteringMemory:
    return FilteringMemory(**{"fresh_weight": BETA, "window": 4, "kernel": Kernel(order=0.5), **settings})


def by_hand(fresh, memory, *, blends: bool):
    """The formula, with a list for the history."""
    history, found = [], []
    for each in fresh:
        lags = min(memory.window - 1, len(history))
        weights = memory.kernel.weights(lags)
        branch = sum((weight * history[-lag] for lag, weight in enumerate(weights, start=1)), 0 * each)
        own = each if memory.before_noise else memory.fresh_weight * each
        found.append(own + (1 - memory.fresh_weight) * branch)
        history.append(found[-1] if blends else each)
    return found


def test_before_the_noise_blends_are_remembered(stream, same):
    seen = stream(memory())
    same(seen.blends(), by_hand(seen.fresh, seen.memory, blends=True))


def test_after_the_release_releases_are_remembered(stream, same):
    seen = stream(memory(before_noise=False, recursive=False))
    same(seen.blends(), by_hand(seen.fresh, seen.memory, blends=False))


def test_after_the_release_blends_can_be_remembered_instead(stream, same):
    seen = stream(memory(before_noise=False))
    expected = by_hand(seen.fresh, seen.memory, blends=True)
    same(seen.blends(), expected)
    releases = by_hand(seen.fresh, seen.memory, blends=False)
    assert not torch.allclose(expected[-1], releases[-1])


def test_a_constant_stream_stays_what_it_is_after_the_release(stream):
    """Weights that sum to 1 leave alone what does not change; the first blend has no memory yet."""
    seen = stream(memory(before_noise=False, recursive=False))
    seen.fresh = [torch.ones_like(each) for each in seen.fresh]
    blends = seen.blends()
    assert all(torch.allclose(each, torch.ones_like(each)) for each in blends[1:])
    assert torch.allclose(blends[0], torch.full_like(blends[0], BETA))


def test_what_is_told_is_the_depth_of_the_kernel_and_the_share_of_the_memory(stream):
    seen = stream(memory(kernel=Kernel()))
    blends = seen.blends()
    assert seen.told[0] == {}
    assert [told["memory depth"] for told in seen.told[1:4]] == [1.0, 1.5, 2.0]
    branch = (1 - BETA) * (blends[4] + blends[5] + blends[6]) / 3
    assert seen.told[7]["memory ratio"] == pytest.approx(float(branch.norm() / blends[7].norm()))


@pytest.mark.parametrize("kernel", ["fractional", "tempered", "uniform", "exponential"])
@pytest.mark.parametrize("window", [2, 4, 40])
def test_fo_dp_sgd_is_the_recursive_filter_of_dp_sgd_with_the_noise_over_beta(runs, same, kernel, window):
    shared = {**SIZES, "fresh_weight": BETA, "kernel": kernel, "window": window}
    before = runs.path(FODPSGD(**shared, noise_multiplier=1.2))
    after = runs.path(PostFMDPSGD(**shared, noise_multiplier=1.2 / BETA, recursive=True))
    same(before, after, atol=1e-9)


def test_the_identity_needs_the_noise_over_beta_and_not_the_noise(runs, same):
    """The planted fault: a comparison at the same sigma is one with a noisier method."""
    shared = {**SIZES, "fresh_weight": BETA, "noise_multiplier": 1.2}
    with pytest.raises(AssertionError):
        same(runs.path(FODPSGD(**shared)), runs.path(PostFMDPSGD(**shared, recursive=True)), atol=1e-3)


def test_the_identity_holds_while_noise_and_clip_norm_move(runs, same):
    shared = {
        **SIZES,
        "fresh_weight": BETA,
        "noise_schedule": Step(every=4, factor=0.8),
        "clip_schedule": Exponential(end=0.3),
    }
    before = runs.path(FODPSGD(**shared, noise_multiplier=1.2))
    after = runs.path(PostFMDPSGD(**shared, noise_multiplier=1.2 / BETA, recursive=True))
    same(before, after, atol=1e-9)


@pytest.mark.parametrize("recipe", [FODPSGD, PostFMDPSGD])
def test_beta_one_is_dp_sgd_to_the_last_bit(runs, recipe):
    plain = runs.path(DPSGD(**SIZES, noise_multiplier=1.2, momentum=0.0))
    found = runs.path(recipe(**SIZES, noise_multiplier=1.2, fresh_weight=1.0))
    assert all(one.equal(other) for one, other in zip(found, plain, strict=True))


@pytest.mark.parametrize("nothing", [{"window": 1}, {"kernel": "none"}])
def test_a_memory_of_nothing_is_dp_sgd_at_the_noise_over_beta_with_shorter_steps(runs, same, nothing):
    found = runs.path(FODPSGD(**SIZES, noise_multiplier=1.2, fresh_weight=BETA, **nothing))
    shorter = {**SIZES, "learning_rate": BETA * SIZES["learning_rate"]}
    same(found, runs.path(DPSGD(**shorter, noise_multiplier=1.2 / BETA, momentum=0.0)), atol=1e-12)


@pytest.mark.parametrize("recipe", [FODPSGD(**NOISY), FODPSGD(**NOISY, torch_optimizer="Adam")])
def test_with_a_memory_the_weights_go_another_way_than_without(runs, recipe):
    plain = recipe.matched(recipe.plan(90, runs.start(recipe).plan.budget))
    assert not runs.path(recipe)[-1].allclose(runs.path(plain)[-1])


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"fresh_weight": 0.0}, "fresh_weight is 0.0"),
        ({"fresh_weight": 1.5}, "fresh_weight is 1.5"),
        ({"window": 0}, "window is 0"),
        ({"order": 2.0}, "order is 2.0"),
        ({"kernel": "cauchy"}, "'cauchy'"),
        ({"torch_optimizer": "AdamBC"}, "independent"),
        ({"torch_optimizer": "RMSprop"}, "'SGD', 'Adam'"),
    ],
)
def test_settings_that_mean_nothing_are_refused_by_name(wrong, complaint):
    with pytest.raises(UserError, match=complaint):
        FODPSGD(**wrong)


def test_a_filter_before_the_noise_cannot_remember_what_was_never_released():
    with pytest.raises(ValueError, match="recursive"):
        memory(recursive=False)


def test_memory_and_selection_in_one_plan_are_refused():
    from discreet.accounting import Budget
    from discreet.recipes import DPSUR

    plan = DPSUR(expected_batch_size=30, releases=5, noise_multiplier=2.0).plan(
        300, Budget(epsilon=1e4, delta=1e-5)
    )
    with pytest.raises(ValueError, match="memory and selecting"):
        replace(plan, memory=memory())

import pytest

from discreet.recipes import FODPSGD, SMADPSGD, PostFMDPSGD

SIZES = {"expected_batch_size": 20, "releases": 4, "learning_rate": 0.3, "noise_multiplier": 1.0}
BETA = 0.6
MEMORIES = {
    "fo": FODPSGD(**SIZES, fresh_weight=BETA),
    "post": PostFMDPSGD(**SIZES, fresh_weight=BETA),
    "sma": SMADPSGD(**SIZES, fresh_weight=BETA, warm_up=0.5, spectrum_every=1),
}


@pytest.mark.parametrize("name", MEMORIES)
def test_each_release_is_a_step_against_the_blend(lesson, same, name):
    seen = lesson(MEMORIES[name])
    weights = seen.start
    for blend, found in zip(seen.gradients, seen.weights, strict=True):
        weights = weights - 0.3 * blend
        same(found, weights)


def test_the_second_blend_has_the_first_in_it_by_what_beta_leaves(lesson, same):
    """With steps too short to move the weights, the draws of two runs give the same sums and noise."""
    still = {**SIZES, "learning_rate": 1e-12}
    alone = lesson(FODPSGD(**still, fresh_weight=BETA, window=1))
    blended = lesson(FODPSGD(**still, fresh_weight=BETA, window=2))
    same(blended.gradients[0], alone.gradients[0])
    for before, fresh, found in zip(
        blended.gradients, alone.gradients[1:], blended.gradients[1:], strict=False
    ):
        same(found, fresh + (1 - BETA) * before)


def test_momentum_takes_the_blends(lesson, same):
    seen = lesson(FODPSGD(**SIZES, fresh_weight=BETA, momentum=0.8))
    weights, velocity = seen.start, 0.0
    for blend, found in zip(seen.gradients, seen.weights, strict=True):
        velocity = 0.8 * velocity + blend
        weights = weights - 0.3 * velocity
        same(found, weights)


def test_the_papers_preset_says_what_its_table_1_says():
    for settings in SMADPSGD.presets["cifar-10"].values():
        recipe = SMADPSGD(**settings)
        assert (recipe.fresh_weight, recipe.order, recipe.window) == (0.95, 0.7, 4)
        assert recipe.interval == (2.0, 6.0)
        assert recipe.clipping == "layer-wise"

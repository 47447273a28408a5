import pytest

from discreet.errors import UserError
from discreet.recipes import DPAdamBC
from discreet.schedules import Step


def test_the_noises_own_variance_is_taken_out_of_the_second_moment(lesson, same):
    recipe = DPAdamBC(
        expected_batch_size=20,
        releases=4,
        learning_rate=0.05,
        clip_norm=0.5,
        betas=(0.7, 0.9),
        floor=1e-4,
        noise_schedule=Step(every=2, factor=0.5),
    )
    seen = lesson(recipe)
    weights, first, second, noise = seen.start, 0.0, 0.0, 0.0
    for step, (gradient, found) in enumerate(zip(seen.gradients, seen.weights, strict=True), start=1):
        sigma = seen.plan.noise.multiplier * (1.0 if step <= 2 else 0.5)
        first = 0.7 * first + 0.3 * gradient
        second = 0.9 * second + 0.1 * gradient**2
        noise = 0.9 * noise + 0.1 * (sigma * 0.5 / 20) ** 2
        corrected = ((second - noise) / (1 - 0.9**step)).clamp(min=1e-4)
        weights = weights - 0.05 * first / (1 - 0.7**step) / corrected.sqrt()
        same(found, weights)


def test_a_floor_is_needed():
    with pytest.raises(UserError, match="floor is 0"):
        DPAdamBC(floor=0.0)

from discreet.recipes import DPSGD
from discreet.schedules import Linear

SIZES = {"expected_batch_size": 20, "releases": 4, "learning_rate": 0.3}


def test_each_release_is_a_step_of_sgd_with_momentum_and_weight_decay(lesson, same):
    seen = lesson(DPSGD(**SIZES, momentum=0.8, weight_decay=0.1))
    weights, velocity = seen.start, 0.0
    for gradient, found in zip(seen.gradients, seen.weights, strict=True):
        velocity = 0.8 * velocity + gradient + 0.1 * weights
        weights = weights - 0.3 * velocity
        same(found, weights)


def test_nesterovs_momentum_looks_ahead(lesson, same):
    seen = lesson(DPSGD(**SIZES, momentum=0.8, nesterov=True))
    weights, velocity = seen.start, 0.0
    for gradient, found in zip(seen.gradients, seen.weights, strict=True):
        velocity = 0.8 * velocity + gradient
        weights = weights - 0.3 * (gradient + 0.8 * velocity)
        same(found, weights)


def test_the_learning_rate_follows_its_schedule(lesson, same):
    seen = lesson(DPSGD(**SIZES, momentum=0.0, learning_rate_schedule=Linear(start=1.0, end=0.25)))
    weights = seen.start
    for factor, gradient, found in zip((1.0, 0.75, 0.5, 0.25), seen.gradients, seen.weights, strict=True):
        weights = weights - 0.3 * factor * gradient
        same(found, weights)

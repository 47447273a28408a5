import pytest

from discreet.errors import UserError
from discreet.recipes import DPOptimizer

SIZES = {"expected_batch_size": 20, "releases": 4, "learning_rate": 0.05}


def test_each_release_is_a_step_of_the_optimizer_that_was_named(lesson, same):
    seen = lesson(DPOptimizer(**SIZES, torch_optimizer="Adagrad", torch_settings={"eps": 1e-3}))
    weights, squares = seen.start, 0.0
    for gradient, found in zip(seen.gradients, seen.weights, strict=True):
        squares = squares + gradient**2
        weights = weights - 0.05 * gradient / (squares.sqrt() + 1e-3)
        same(found, weights)


@pytest.mark.parametrize("name", ["LBFGS", "Optimizer", "no_such_thing"])
def test_what_cannot_be_used_is_refused_by_name(lesson, name):
    with pytest.raises(UserError, match=name):
        lesson(DPOptimizer(**SIZES, torch_optimizer=name))

from discreet.recipes import DPAdam


def test_each_release_is_a_step_of_adam(lesson, same):
    recipe = DPAdam(
        expected_batch_size=20, releases=4, learning_rate=0.05, betas=(0.7, 0.9), epsilon_root=1e-3
    )
    seen = lesson(recipe)
    weights, first, second = seen.start, 0.0, 0.0
    for step, (gradient, found) in enumerate(zip(seen.gradients, seen.weights, strict=True), start=1):
        first = 0.7 * first + 0.3 * gradient
        second = 0.9 * second + 0.1 * gradient**2
        root = (second / (1 - 0.9**step)).sqrt() + 1e-3
        weights = weights - 0.05 * first / (1 - 0.7**step) / root
        same(found, weights)

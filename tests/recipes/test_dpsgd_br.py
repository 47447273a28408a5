import torch

from discreet.recipes import DPSGDBR

GATE = {
    "gate_batch_size": 40,
    "gate_clip": 0.02,
    "gate_noise_multiplier": 0.7,
    "gate_threshold": -0.2,
    "tie": 0.0,
    "patience": None,
}


def chosen(found, recipe, *, best=min):
    """The weights that the paper's rule leads to after each trial, worked out from the draws alone."""
    weights, velocity, waiting, expected = found.weights[0], 0.0, [], []
    factor = 1.0
    for trial, gradient in enumerate(found.gradients):
        candidate = weights - 0.7 * factor * (0.6 * velocity + gradient)
        batch = found.gate_batch(trial, 40 / 80)
        change = float((found.losses(candidate, batch) - found.losses(weights, batch)).mean())
        score = min(max(change / 0.02, -1.0), 1.0) + 2 * 0.7 * found.gate_normal(trial)
        if score < -0.2:
            waiting.append((score, gradient))
        if len(waiting) == recipe.buffer_size:
            velocity = 0.6 * velocity + best(waiting, key=lambda pair: pair[0])[1]
            weights = weights - 0.7 * factor * velocity
            waiting = []
        expected.append(weights)
    return expected


def same(found, expected):
    return all(
        torch.allclose(one, other, rtol=1e-5, atol=1e-6)
        for one, other in zip(found.weights[1:], expected, strict=True)
    )


def test_of_two_accepted_candidates_the_one_with_the_smaller_score_becomes_the_update(trials, small):
    recipe = DPSGDBR(**small, **GATE, progress="none")
    found = trials(recipe, 40)
    assert 3 < sum(found.kept) < 20
    assert same(found, chosen(found, recipe))
    assert not same(found, chosen(found, recipe, best=max))


def test_equation_16_as_printed_takes_the_larger(trials, small):
    recipe = DPSGDBR(**small, **GATE, progress="none", takes="worse")
    found = trials(recipe, 40)
    assert same(found, chosen(found, recipe, best=max))


def test_without_buffer_and_decay_it_is_dpsur(trials, small):
    from discreet.recipes import DPSUR

    gate = {name: value for name, value in GATE.items() if name.startswith("gate")}
    found = trials(DPSGDBR(**small, **GATE, progress="none", buffer_size=1), 20)
    other = trials(DPSUR(**small, **gate), 20)
    assert found.kept == other.kept
    assert torch.equal(found.weights[-1], other.weights[-1])


def test_decay_moves_noise_and_learning_rate_after_each_update_and_never_between(trials, small):
    recipe = DPSGDBR(**small, **GATE, buffer_size=1, slow_decay=0.9, fast_decay=0.9, decay_floor=0.2)
    found = trials(recipe, 25)
    phase = found.run.state.selection.phase
    moves = sum(found.kept) - 1  # the first measurement has nothing before it
    assert moves > 3
    assert phase.noise == max(0.2, 0.9**moves) or abs(phase.noise - 0.9**moves) < 1e-12
    assert phase.learning_rate == phase.noise


def test_presets_are_those_of_table_4():
    settings = DPSGDBR.presets["fashion-mnist"][1.0]
    assert (settings["noise_multiplier"], settings["learning_rate"]) == (6.0, 6.0)
    assert (settings["gate_noise_multiplier"], settings["gate_threshold"]) == (1.3, -1.5)

import pytest

from discreet.errors import UserError
from discreet.gates.scores import LossChange
from discreet.recipes import DPSUR

GATE = {"gate_batch_size": 16, "gate_clip": 0.02, "gate_noise_multiplier": 0.7, "gate_threshold": -0.4}


def passes(found, trial, candidate):
    """The paper's test, from the losses of both models on the same fresh batch."""
    batch = found.gate_batch(trial, 16 / 80)
    change = float(
        (found.losses(candidate, batch) - found.losses(found.weights[trial], batch)).mean()
        if len(batch)
        else 0.0
    )
    noisy = min(max(change, -0.02), 0.02) + 2 * 0.02 * 0.7 * found.gate_normal(trial)
    return noisy < -0.4 * 0.02


def agrees(found):
    verdicts = [passes(found, trial, candidate) for trial, candidate in enumerate(found.candidates())]
    return verdicts == found.kept


def test_a_candidate_is_kept_when_the_noisy_loss_change_is_below_the_threshold(trials, small):
    found = trials(DPSUR(**small, **GATE), 40)
    assert agrees(found)
    assert 5 < sum(found.kept) < 35


def test_a_test_without_the_factor_of_two_would_be_noticed(trials, small, monkeypatch):
    honest = LossChange.noisy
    monkeypatch.setattr(LossChange, "noisy", lambda self, trial, noise: honest(self, trial, noise / 2))
    assert not agrees(trials(DPSUR(**small, **GATE), 40))


def test_weights_and_momentum_know_of_kept_candidates_only(trials, small):
    assert trials(DPSUR(**small, **GATE), 40).follow


def test_momentum_that_remembers_what_was_rejected_would_be_noticed(trials, small, monkeypatch):
    from discreet.training.undo import Undo

    monkeypatch.setattr(Undo, "back", lambda self: self._parameters.copy_(self._kept))
    assert not trials(DPSUR(**small, **GATE), 40).follow


@pytest.mark.parametrize(
    ("data", "epsilon", "sigma", "gate_sigma"),
    [("mnist", 1.0, 2.0, 1.3), ("fashion-mnist", 3.0, 2.15, 0.8), ("imdb", 4.0, 1.23, 0.9)],
)
def test_presets_are_those_of_table_1(data, epsilon, sigma, gate_sigma):
    settings = DPSUR.presets[data][epsilon]
    assert settings["noise_multiplier"] == sigma
    assert settings["gate_noise_multiplier"] == gate_sigma


def test_a_validation_batch_larger_than_the_data_is_refused(trials, small):
    with pytest.raises(UserError, match="gate_batch_size is 300 but there are only 80 records"):
        trials(DPSUR(**small, gate_batch_size=300), 1)

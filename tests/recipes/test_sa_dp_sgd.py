import math

import pytest

from discreet.errors import UserError
from discreet.gates import annealing
from discreet.recipes import SADPSGD

GATE = {
    "gate_batch_size": 16,
    "gate_clip": 0.05,
    "gate_noise_multiplier": 0.7,
    "coldness": 2.0,
    "cooling": 1.0,
    "cooling_every": 5,
    "coldest": 6.0,
}


def agrees(found, *, patience=math.inf):
    """Whether candidates passed as the formula on the recipe's page has it."""
    verdicts, in_a_row = [], 0
    for trial, candidate in enumerate(found.candidates()):
        batch = found.gate_batch(trial, 16 / 80)
        changes = (found.losses(candidate, batch) - found.losses(found.weights[trial], batch)) / 0.05
        score = (float(changes.clamp(-1.0, 1.0).sum()) + 0.7 * found.gate_normal(trial)) / 16
        coin = (int(found.run.key.stream("gate coin", trial).words(1)[0]) & (2**63 - 1)) / 2**63
        cold = min(6.0, 2.0 + 1.0 * (trial // 5))
        verdicts.append(score <= 0.0 or coin < math.exp(-cold * score) or in_a_row >= patience)
        in_a_row = 0 if verdicts[-1] else in_a_row + 1
    return verdicts == found.kept


def test_a_worse_candidate_is_kept_by_a_coin_that_gets_colder(trials, small):
    found = trials(SADPSGD(**small, **GATE), 50)
    assert agrees(found)
    assert found.follow
    assert 10 < sum(found.kept) < 50


def test_a_coin_that_stays_warm_would_be_noticed(trials, small, monkeypatch):
    monkeypatch.setattr(annealing.Cooling, "at", lambda self, number: 0.1)
    assert not agrees(trials(SADPSGD(**small, **GATE), 50))


def test_after_enough_rejections_the_next_is_kept_unseen(trials, small):
    cold = {**GATE, "gate_threshold": 0.0}
    found = trials(SADPSGD(**{**small, "learning_rate": 0.7}, **cold, patience=1), 50)
    assert agrees(found, patience=1)
    assert not any(not one and not two for one, two in zip(found.kept, found.kept[1:], strict=False))


def test_there_is_no_formula_that_could_end_a_run():
    with pytest.raises(UserError, match="no formula of its paper"):
        SADPSGD(claimed_epsilon=1.0)

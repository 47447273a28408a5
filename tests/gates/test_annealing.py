import pytest
import torch

from discreet.accounting import Accounting, PoissonGaussian
from discreet.accounting.selective.gates import AnnealingGate
from discreet.errors import UserError
from discreet.gates import AnnealedLossTest, AnnealedSumTest, annealing
from discreet.gates.annealing import Cooling
from discreet.gates.scores import LossChange, LossChangeSum
from discreet.sampling import PoissonSampler

SAMPLER = PoissonSampler(examples=40, rate=0.5)
COLD = Cooling(start=0.7, step=0.0, most=0.7)
TOTAL = AnnealedLossTest(change=LossChange(sampler=SAMPLER, bound=0.01), noise_multiplier=0.8, cooling=COLD)
EACH = AnnealedSumTest(change=LossChangeSum(sampler=SAMPLER, bound=0.01), noise_multiplier=2.0, cooling=COLD)
THEORY = AnnealingGate(sample_rate=0.5, noise_multiplier=0.8, coldness=0.7)


@pytest.mark.parametrize("change", [-1.0, -0.003, 0.0, 0.004, 1.0])
def test_candidates_pass_as_often_as_the_accountant_takes_them_to(as_often_as, change):
    metric = min(max(change / 0.01, -1.0), 1.0)
    assert as_often_as(TOTAL, THEORY._accepts(metric), before=1.0, after=1.0 + change)


def test_a_coin_that_is_tossed_for_good_scores_too_would_be_noticed(as_often_as, monkeypatch):
    monkeypatch.setattr(annealing, "_uniform", lambda trial: 1.0)
    assert not as_often_as(TOTAL, THEORY._accepts(0.0), before=1.0, after=1.0)


def test_it_gets_colder_step_by_step_until_it_is_cold_enough():
    cooling = Cooling(start=1.0, step=0.5, most=2.2, every=10)
    assert [cooling.at(number) for number in (0, 9, 10, 19, 20, 30, 1000)] == [1, 1, 1.5, 1.5, 2, 2.2, 2.2]


def test_trials_of_one_temperature_are_one_event(candidate):
    from dataclasses import replace

    gate = replace(TOTAL, cooling=Cooling(start=1.0, step=0.5, most=9.0, every=10))
    events = {gate.event(replace(candidate, number=number), scored=False) for number in range(30)}
    assert {event.coldness for event in events} == {1.0, 1.5, 2.0}


def test_the_sum_clips_each_record_and_not_the_whole(staged):
    changes = torch.tensor([5.0, -0.004, 0.002, float("nan"), -7.0])
    assert EACH.change._clipped_sum(changes.double()) == pytest.approx(1 - 0.4 + 0.2 + 1 - 1)


def test_one_record_moves_the_sum_by_no_more_than_one():
    others = torch.tensor([0.004, -0.02]).double()
    for extreme in (-1e9, -0.003, 0.0, 0.5, float("nan"), float("inf")):
        added = EACH.change._clipped_sum(torch.cat([others, torch.tensor([extreme]).double()]))
        assert abs(added - EACH.change._clipped_sum(others)) <= 1.0 + 1e-12


def test_sums_are_charged_as_two_releases_whatever_became_of_them(candidate):
    parts = EACH.event(candidate, scored=False).parts()
    assert parts == (
        PoissonGaussian(sample_rate=0.1, noise_multiplier=2.0),
        PoissonGaussian(sample_rate=0.5, noise_multiplier=2.0),
    )
    assert EACH.releases_scores
    assert not TOTAL.releases_scores


def test_sums_cannot_be_held_to_hidden_accounting():
    from discreet.accounting import Budget
    from discreet.recipes import SADPSGD

    with pytest.raises(UserError, match='need accounting "visible"'):
        SADPSGD(expected_batch_size=20, gate_batch_size=20, epochs=1).plan(
            100, Budget(epsilon=5, delta=1e-4), accounting=Accounting.HIDDEN
        )


def test_after_enough_rejections_the_next_candidate_passes_unseen(staged):
    from dataclasses import replace

    freezing = replace(EACH, cooling=Cooling(start=1e9, step=0.0, most=1e9), noise_multiplier=0.01)
    impatient = replace(freezing, patience=3)
    trial = staged(0, before=0.0, after=1.0)
    trial.rejected_in_a_row = 3
    assert impatient.judge(trial).accepted
    later = staged(0, before=0.0, after=1.0)
    later.rejected_in_a_row = 3
    assert not freezing.judge(later).accepted


@pytest.mark.parametrize("wrong", [{"start": -1.0}, {"step": float("nan")}, {"every": 0}])
def test_a_cooling_that_is_none_is_refused(wrong):
    with pytest.raises(UserError, match="of the cooling is"):
        Cooling(**{"start": 1.0, "step": 0.0, "most": 1.0, **wrong})

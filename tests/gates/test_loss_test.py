import math
from dataclasses import replace

import pytest
import torch

from discreet.accounting.selective.gates import LossGate
from discreet.errors import UserError
from discreet.gates import LossTest, scores
from discreet.gates.scores import LossChange
from discreet.recipes import DPSUR
from discreet.sampling import PoissonSampler
from discreet.schedules import Phase

SAMPLER = PoissonSampler(examples=40, rate=0.5)
GATE = LossTest(change=LossChange(sampler=SAMPLER, bound=0.01), noise_multiplier=0.9, threshold=-0.6)
THEORY = LossGate(sample_rate=0.5, noise_multiplier=0.9, threshold=-0.6)


def psi(metric: float) -> float:
    """The acceptance probability that the accountant works with, at a metric in units of C_v."""
    from scipy.special import ndtr

    return float(ndtr((THEORY.threshold - metric) / (2.0 * THEORY.noise_multiplier)))


@pytest.mark.parametrize("change", [-0.5, -0.01, -0.004, 0.0, 0.006, 0.01, 3.0])
def test_candidates_pass_as_often_as_the_accountant_takes_them_to(as_often_as, change):
    metric = min(max(change / 0.01, -1.0), 1.0)
    assert as_often_as(GATE, psi(metric), before=1.0, after=1.0 + change)


def test_the_best_and_the_worst_candidate_are_the_ends_of_the_accountants_range():
    assert psi(-1.0) == pytest.approx(THEORY.a_max)
    assert psi(1.0) == pytest.approx(THEORY.a_min)


def test_noise_without_the_factor_of_two_would_be_noticed(as_often_as, monkeypatch):
    right = scores._normal
    monkeypatch.setattr(scores, "_normal", lambda trial: 0.5 * right(trial))
    assert not as_often_as(GATE, psi(-1.0), before=1.0, after=0.0)


def test_a_threshold_of_the_wrong_sign_would_be_noticed(as_often_as):
    assert not as_often_as(replace(GATE, threshold=0.6), psi(-1.0), before=1.0, after=0.0)


def test_both_models_are_looked_at_on_the_same_fresh_batch(staged):
    first, second = staged(0), staged(1)
    GATE.judge(first)
    GATE.judge(second)
    before, after = first.batches
    assert before.equal(after)
    assert not before.equal(second.batches[0])
    assert first.proposals == 1


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_counts_as_the_worst(as_often_as, broken):
    assert as_often_as(GATE, psi(1.0), before=1.0, after=broken)


def test_two_losses_that_are_not_finite_count_as_the_worst_as_well(as_often_as):
    assert as_often_as(GATE, psi(1.0), before=math.inf, after=math.inf)


def test_an_empty_batch_counts_as_no_change(as_often_as):
    empty = replace(GATE, change=LossChange(sampler=PoissonSampler(examples=40, rate=1e-12), bound=0.01))
    assert as_often_as(empty, psi(0.0), before=1.0, after=0.0)


def test_one_record_moves_the_score_by_no_more_than_the_range(staged):
    whole = replace(GATE, change=LossChange(sampler=PoissonSampler(examples=3, rate=1.0), bound=0.01))
    for extreme in (-1e9, 0.0, 1e9, math.nan):
        scored = [
            whole.judge(staged(5, before=torch.zeros(3), after=torch.tensor([0.001, -0.002, last]))).score
            for last in (0.0, extreme)
        ]
        assert abs(scored[0] - scored[1]) <= 2.0 + 1e-12


def test_its_events_carry_what_it_does(candidate):
    event = GATE.event(candidate, scored=False)
    assert (event.kind, event.gate_rate, event.gate_multiplier, event.gate_threshold) == (
        "gated-trial",
        0.5,
        0.9,
        -0.6,
    )
    assert GATE.event(candidate, scored=True).kind == "scored-trial"
    moved = replace(candidate, phase=Phase(gate_noise=0.5, gate_threshold=0.5))
    assert GATE.event(moved, scored=False).gate_multiplier == pytest.approx(0.45)
    assert GATE.event(moved, scored=False).gate_threshold == pytest.approx(-0.3)


def test_the_noise_of_equation_12_is_charged_as_what_it_is(as_often_as, candidate):
    literal = replace(GATE, unscaled=True)
    event = literal.event(candidate, scored=False)
    assert event.gate_multiplier == pytest.approx(0.9 / 0.02)
    assert as_often_as(literal, event.acceptance.high, before=1.0, after=0.0)
    # What the paper claims goes by the printed sigma_v all the same.
    assert literal.claimed_event(candidate).gate_multiplier == 0.9


def test_a_gate_on_more_records_than_there_are_is_refused():
    with pytest.raises(UserError, match="gate_batch_size is 256 but there are only 100"):
        DPSUR().gate(PoissonSampler(examples=100, rate=0.5))

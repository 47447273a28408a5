import math
from dataclasses import replace

import pytest
import torch
from scipy.special import ndtr

from discreet.accounting.selective.gates import BatchGate
from discreet.errors import UserError
from discreet.gates import BiasTest

GATE = BiasTest(bound=1.0, cap=4.0, noise_multiplier=3.0, threshold=0.25, span=8.0, reference=10.0)
THEORY = BatchGate(noise_multiplier=3.0, threshold=0.25, span=8.0, one_sided=True)


def accepted_at(change: float) -> float:
    """The acceptance probability at a change of the bias, in records."""
    return float(ndtr((GATE.threshold * 4.0 - min(max(change, -4.0), 4.0)) / 3.0))


def norms_of_bias(bias: int) -> list[float]:
    return [4.0] * bias + [0.5] * 7


@pytest.mark.parametrize("bias", [0, 6, 9, 10, 12, 14, 40])
def test_candidates_pass_as_often_as_the_accountant_takes_them_to(as_often_as, bias):
    assert as_often_as(GATE, accepted_at(bias - 10.0), norms=norms_of_bias(bias))


def test_the_ends_are_those_of_the_accountants_gate():
    assert accepted_at(-4.0) == pytest.approx(THEORY.high)
    assert accepted_at(4.0) == pytest.approx(THEORY.low)


def test_less_noise_than_stated_would_be_noticed(as_often_as):
    assert not as_often_as(replace(GATE, noise_multiplier=1.5), accepted_at(-2.0), norms=norms_of_bias(8))


def test_a_mean_in_place_of_the_sum_would_be_noticed(as_often_as, monkeypatch):
    """The accountant's one-sided bound needs a sum of terms that are never negative."""
    right = BiasTest._bias
    monkeypatch.setattr(BiasTest, "_bias", lambda self, norms: right(self, norms) / len(norms))
    assert not as_often_as(GATE, accepted_at(4.0), norms=norms_of_bias(40))


def test_a_record_adds_between_nothing_and_one():
    for norm in (0.0, 0.99, 1.0, 1.01, 3.9, 4.0, 1e9, math.inf, math.nan):
        added = GATE._bias(torch.tensor([[2.0], [norm]])) - GATE._bias(torch.tensor([[2.0]]))
        assert 0.0 <= added <= 1.0, norm


def test_a_record_within_the_bound_adds_nothing_and_one_beyond_the_cap_one():
    assert GATE._bias(torch.tensor([[0.3], [1.0]])) == 0.0
    assert GATE._bias(torch.tensor([[4.0], [50.0]])) == 2.0
    assert GATE._bias(torch.tensor([[2.0]])) == 0.5


def test_norms_of_several_groups_are_those_of_the_whole_gradient():
    assert GATE._bias(torch.tensor([[2.4, 3.2]])) == pytest.approx(1.0)


def test_an_accepted_trial_leaves_its_noisy_bias_as_the_reference(staged):
    verdict = GATE.judge(staged(3, norms=norms_of_bias(9), reference=10.0))
    assert verdict.reference == pytest.approx(max(0.0, 10.0 + verdict.score))
    assert replace(GATE, follows=False).judge(staged(3, norms=norms_of_bias(9))).reference is None


def test_the_reference_that_was_left_is_what_the_next_trial_is_compared_with(as_often_as):
    assert as_often_as(GATE, accepted_at(-1.0), norms=norms_of_bias(9), reference=10.0)
    assert as_often_as(GATE, accepted_at(4.0), norms=norms_of_bias(9), reference=2.0)


def test_a_reference_that_follows_is_charged(candidate):
    assert GATE.event(candidate, scored=False).private_reference
    assert not replace(GATE, follows=False).event(candidate, scored=False).private_reference
    assert GATE.event(candidate, scored=False).one_sided


@pytest.mark.parametrize(
    ("wrong", "told"),
    [({"cap": 0.5}, "cap is 0.5"), ({"bound": 0.0}, "positive"), ({"span": 0.5}, "span is 0.5")],
)
def test_settings_that_break_the_bound_are_refused(wrong, told):
    with pytest.raises(UserError, match=told):
        replace(GATE, **wrong)

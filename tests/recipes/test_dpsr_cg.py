import pytest
import torch

from discreet.errors import UserError
from discreet.gates.bias_test import BiasTest
from discreet.recipes import DPSRCG

RECIPE = {"scaling_bound": 0.4, "bias_cap": 1.0, "gate_noise_multiplier": 1.5, "gate_span": 6.0}


def norms(found, weights, indices):
    """The norm of each record's gradient: that of a linear layer is an outer product."""
    inputs = found.inputs[indices].double()
    outputs = inputs @ weights[:6].reshape(2, 3).T + weights[6:]
    error = outputs.softmax(dim=1) - torch.nn.functional.one_hot(found.targets[indices], 2)
    return error.norm(dim=1) * (inputs.square().sum(dim=1) + 1.0).sqrt()


def agrees(found, *, follows=True):
    """Whether candidates passed as the formula on the recipe's page has it."""
    reference, verdicts = 1.0 * 20, []
    for trial, weights in enumerate(found.weights[:-1]):
        words = found.run.key.stream("batch", trial).words(80) & (2**63 - 1)
        batch = torch.tensor([i for i in range(80) if int(words[i]) < int(0.25 * 2**63)])
        lengths = norms(found, weights, batch)
        bias = float((lengths.clamp(max=1.0) / 1.0)[lengths > 0.4].sum())
        noisy = min(max(bias - reference, -3.0), 3.0) + 1.5 * found.gate_normal(trial)
        verdicts.append(noisy < 0.25 * 3.0)
        if verdicts[-1] and follows:
            reference = max(0.0, reference + noisy)
    return verdicts == found.kept


@pytest.mark.parametrize("reference", ["private", "public"])
def test_a_candidate_is_kept_unless_its_batch_was_clipped_more(trials, small, reference):
    found = trials(DPSRCG(**small, **RECIPE, reference=reference), 40)
    assert agrees(found, follows=reference == "private")
    assert found.follow


def test_a_reference_that_moves_with_rejected_trials_would_be_noticed(trials, small, monkeypatch):
    found = trials(DPSRCG(**small, **RECIPE), 40)
    assert 5 < sum(found.kept) < 40
    assert not agrees(found, follows=False)


def test_a_mean_in_place_of_the_sum_would_be_noticed(trials, small, monkeypatch):
    monkeypatch.setattr(
        BiasTest, "_bias", lambda self, norms: float((norms.norm(dim=1) > self.bound).float().mean())
    )
    assert not agrees(trials(DPSRCG(**small, **RECIPE), 40))


def test_gradients_are_scaled_and_those_beyond_the_bound_clipped(small):
    from discreet.accounting import Budget

    plan = DPSRCG(**small, **RECIPE).plan(80, Budget(epsilon=500.0, delta=1e-3))
    weights = plan.clipping.rule.weights(torch.tensor([[0.1], [0.4], [4.0]]))
    assert weights.flatten().tolist() == pytest.approx([0.5 / 0.4, 0.5 / 0.4, 0.5 / 4.0])


def test_the_ablations_are_there(small):
    from discreet.recipes import DPSGD, DPSUR

    without_release = {name: value for name, value in small.items() if name != "gate"}
    assert DPSGD(**without_release, clipping="scaled", scaling_bound=0.4).scaling_bound == 0.4
    assert DPSUR(**small, clipping="scaled", scaling_bound=0.4).scaling_bound == 0.4


def test_other_clipping_is_refused():
    with pytest.raises(UserError, match="clipping is 'flat'"):
        DPSRCG(clipping="flat", scaling_bound=None)

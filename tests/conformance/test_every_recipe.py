"""What every recipe has to keep, whatever its paper says."""

import math

import pytest
import torch
from scipy import stats
from torch import nn

from discreet import conclude, resume, start
from discreet.accounting import epsilon
from discreet.accounting.certification import verify_certificate
from discreet.accounting.log import read_log
from discreet.errors import BudgetExhausted
from discreet.gradients import weighing
from discreet.recipes import RECIPES
from discreet.training import run as run_module
from discreet.training.evaluate import accuracy


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def finished(run):
    for _ in run:
        pass
    return conclude(run)


def test_every_registered_recipe_has_a_row(request):
    rows = request.config.pluginmanager.get_plugin(str(request.path.with_name("conftest.py"))).ROWS
    assert {row.name for row in rows.values()} == set(RECIPES)


def test_it_learns(workshop, recipe):
    model = workshop.model()
    before = accuracy(model, workshop.data)
    result = finished(start(model, workshop.data, workshop.plan(recipe), seed=1))
    assert accuracy(result.model, workshop.data) > max(before, 0.6)


def test_it_charges_what_it_planned_and_stays_within_the_budget(workshop, recipe, tmp_path):
    plan = workshop.plan(recipe)
    result = finished(start(workshop.model(), workshop.data, plan, folder=tmp_path / "run"))
    history = read_log(tmp_path / "run")
    assert history.charged == result.certificate.releases_executed

    def uncapped(delta):
        return epsilon(history.charges(), delta, accounting=plan.accounting, calculus=plan.calculus)

    delta = workshop.budget.delta
    spent = uncapped(delta) if plan.termination is None else plan.termination.epsilon(uncapped, delta)
    assert spent <= result.certificate.epsilon <= workshop.budget.epsilon
    if plan.adapts:  # the filter's curve is what is certified, and the run comes as near to it as it can
        assert result.certificate.epsilon == pytest.approx(workshop.budget.epsilon)
        assert history.charged <= plan.releases
    else:
        assert history.charged == plan.releases
        assert spent == pytest.approx(result.certificate.epsilon)
        assert spent >= 0.985 * workshop.budget.epsilon
    assert verify_certificate(tmp_path / "run") == []


def test_the_release_after_the_last_is_refused_and_not_charged(workshop, recipe, tmp_path):
    plan = workshop.plan(recipe)
    run = start(workshop.model(), workshop.data, plan, folder=tmp_path / "run")
    finished(run)
    charged = run.filter.charged
    with pytest.raises(BudgetExhausted):
        run.filter.charge(charged, plan.event(charged), plan.releases)
    assert read_log(tmp_path / "run").charged == charged


def test_a_release_that_nobody_paid_for_is_noticed(workshop, recipe, tmp_path, monkeypatch):
    """The planted fault: after a few releases the filter is no longer asked."""
    run = start(workshop.model(), workshop.data, workshop.plan(recipe), folder=tmp_path / "run")
    monkeypatch.setattr(run_module.Run, "_charge", lambda self, number: None)

    def go_on():
        run.release()
        conclude(run)

    with pytest.raises(ValueError, match="charged"):
        go_on()


@pytest.mark.parametrize("killed_after", [0, 1, 5, 11])
def test_a_run_that_was_killed_ends_with_the_very_same_weights(workshop, recipe, tmp_path, killed_after):
    plan = workshop.plan(recipe)
    whole = finished(start(workshop.model(), workshop.data, plan, folder=tmp_path / "whole", seed=3))

    # Checkpoints are rare, so the killed run has charged and made more than it saved.
    run = start(
        workshop.model(), workshop.data, plan, folder=tmp_path / "killed", seed=3, checkpoint_seconds=3600
    )
    for release in run:
        if release.number == 4:
            run.save()
        if release.number > killed_after:
            break
    charged = run.filter.charged
    run.log.close()
    del run

    again = resume(tmp_path / "killed", workshop.model(), workshop.data, plan)
    assert again.state.releases <= charged
    result = finished(again)
    assert weights(result.model).equal(weights(whole.model))
    assert read_log(tmp_path / "killed").charged == read_log(tmp_path / "whole").charged


def test_a_rejected_candidate_leaves_no_trace(workshop, recipe):
    plan = workshop.plan(recipe)
    straight = start(workshop.model(), workshop.data, plan, seed=4)
    detour = start(workshop.model(), workshop.data, plan, seed=4)
    for _ in range(3):
        straight.release()
        detour.release()
    before = detour.state.snapshot()
    detour.state.gradient.normal_()
    detour.state.step(learning_rate=3.0, noise_variance=1.0, average=plan.average)
    assert not detour.state.parameters.equal(straight.state.parameters)
    detour.state.restore(before)
    for _ in range(3):
        straight.release()
        detour.release()
    assert detour.state.parameters.equal(straight.state.parameters)
    assert detour.state.released().equal(straight.state.released())


def noise_is_as_planned(workshop, recipe) -> bool:
    """Batches that are nearly always empty leave the noise alone: its deviation has to be the planned one."""
    plan = workshop.plan(recipe, expected_batch_size=1)
    plan_rate = plan.sampler
    object.__setattr__(plan_rate, "rate", 1e-9)
    run = start(workshop.model(), workshop.data, plan, seed=5)
    total, count = 0.0, 0
    for draw in range(60):
        trial, number = divmod(draw, plan.releases)
        run.private_gradient(number, trial)
        rule = plan.clipping.at(number, plan.releases)
        planned = plan.noise.multiplier_at(number) * rule.sensitivity / plan.sampler.expected_batch_size
        total += float((run.state.gradient.double() / planned).square().sum())
        count += run.state.gradient.numel()
    return bool(stats.chi2(count).ppf(1e-5) < total < stats.chi2(count).ppf(1 - 1e-5))


def test_an_empty_batch_is_noised_as_planned_and_charged(workshop, recipe):
    assert noise_is_as_planned(workshop, recipe)


def test_the_same_check_notices_noise_that_is_too_small(workshop, recipe, monkeypatch):
    right = run_module.add_gaussian_
    monkeypatch.setattr(
        run_module, "add_gaussian_", lambda vector, stddev, stream: right(vector, 0.9 * stddev, stream)
    )
    assert not noise_is_as_planned(workshop, recipe)


def test_the_same_check_notices_noise_that_an_empty_batch_did_not_get(workshop, recipe, monkeypatch):
    right = run_module.add_gaussian_
    monkeypatch.setattr(
        run_module,
        "add_gaussian_",
        lambda vector, stddev, stream: right(vector, stddev, stream) if vector.any() else vector,
    )
    assert not noise_is_as_planned(workshop, recipe)


def largest_influence(workshop, recipe) -> float:
    """How far one record, however extreme, moves the clipped sum, over what the plan allows for it."""
    plan = workshop.plan(recipe)
    run = start(workshop.model(), workshop.data, plan, seed=6)
    rule = plan.clipping.at(0, plan.releases)
    allowed = rule.sensitivity / plan.sampler.expected_batch_size
    largest = 0.0
    for scale in (1e-4, 1.0, 1e4):
        inputs, targets = workshop.data.batch(torch.arange(20))
        inputs = inputs * scale
        sums = []
        for kept in (20, 19):
            run.engine.clipped_sum(inputs[:kept], targets[:kept], rule, run.state.gradient)
            sums.append(run.state.gradient / plan.sampler.expected_batch_size)
        largest = max(largest, float(torch.linalg.vector_norm((sums[0] - sums[1]).double())) / allowed)
    return largest


def test_one_record_moves_the_gradient_by_no_more_than_the_plan_allows(workshop, recipe):
    assert 0.2 < largest_influence(workshop, recipe) <= 1 + 1e-5


def test_the_same_check_notices_norms_that_are_too_small(workshop, recipe, monkeypatch):
    right = weighing.round_up
    monkeypatch.setattr(weighing, "round_up", lambda squared, dtype: 0.9 * right(squared, dtype))
    assert largest_influence(workshop, recipe) > 1 + 1e-5


def test_a_rule_that_breaks_its_own_promise_is_stopped(workshop, recipe, monkeypatch):
    kind = type(workshop.plan(recipe).clipping.rule)
    right = kind.weights
    monkeypatch.setattr(kind, "weights", lambda self, norms: 1.1 * right(self, norms))
    with pytest.raises(RuntimeError, match="break its own sensitivity"):
        largest_influence(workshop, recipe)


def test_the_divisor_is_the_public_expected_batch_size(workshop, recipe):
    """With the noise taken off, a release is the clipped sum over B, however many records were in the batch."""
    plan = workshop.plan(recipe)
    run = start(workshop.model(), workshop.data, plan, seed=7)
    indices = plan.sampler.draw(run.key.stream("batch", 0))
    assert len(indices) != plan.sampler.expected_batch_size
    rule = plan.clipping.at(0, plan.releases)
    expected = torch.zeros_like(run.state.gradient)
    run.engine.clipped_sum(*workshop.data.batch(indices), rule, expected)
    noise = torch.zeros_like(expected, dtype=torch.float64)
    stddev = plan.noise.multiplier_at(0) * rule.sensitivity
    run_module.add_gaussian_(noise, stddev, run.key.stream("noise", 0))
    run.private_gradient(0)
    clipped_mean = run.state.gradient.double() - noise / plan.sampler.expected_batch_size
    weighed = plan.sum_weight * expected.double()
    torch.testing.assert_close(clipped_mean, weighed / plan.sampler.expected_batch_size, rtol=0, atol=1e-6)
    realised = weighed / len(indices)
    assert not torch.allclose(clipped_mean, realised, rtol=0, atol=1e-6)


def test_engines_agree(workshop, recipe):
    plan = workshop.plan(recipe)
    found = [
        weights(finished(start(workshop.model(), workshop.data, plan, seed=8, method=method)).model)
        for method in ("auto", "functional", "loop")
    ]
    for other in found[1:]:
        torch.testing.assert_close(found[0], other, rtol=1e-4, atol=1e-4)


def test_a_split_into_microbatches_changes_nothing(workshop, recipe):
    plan = workshop.plan(recipe)
    found = [
        weights(finished(start(workshop.model(), workshop.data, plan, seed=9, microbatch=size)).model)
        for size in (None, 7)
    ]
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)


class Tied(nn.Module):
    """A layer that is used twice, on top of frozen features; three layers, as the workshop's network has."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Linear(4, 6)
        self.features.requires_grad_(False)
        self.code = nn.Linear(6, 6, bias=False)
        self.again = nn.Linear(6, 6, bias=False)
        self.again.weight = self.code.weight
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, 3)

    def forward(self, inputs):
        return self.head(self.norm(torch.tanh(self.again(torch.tanh(self.code(self.features(inputs)))))))


def test_tied_parameters_move_together_and_frozen_ones_not_at_all(workshop, recipe):
    torch.manual_seed(0)
    model = Tied()
    frozen = model.features.weight.clone()
    result = finished(start(model, workshop.data, workshop.plan(recipe), seed=10))
    assert result.model.code.weight is result.model.again.weight
    assert result.model.features.weight.equal(frozen)
    assert not result.model.features.weight.requires_grad
    assert math.isfinite(float(weights(result.model).sum()))


def test_a_seed_is_no_guarantee_and_a_secret_key_is(workshop, recipe):
    plan = workshop.plan(recipe)
    seeded = finished(start(workshop.model(), workshop.data, plan, seed=11))
    secret = finished(start(workshop.model(), workshop.data, plan))
    assert not seeded.certificate.guarantee
    assert "NO guarantee" in seeded.sentence()
    assert secret.certificate.guarantee
    assert not weights(seeded.model).equal(weights(secret.model))

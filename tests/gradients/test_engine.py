import json
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from discreet.errors import UserError
from discreet.gradients import (
    AutomaticClipping,
    FlatClipping,
    FlatLayout,
    GlobalClipping,
    GradientEngine,
    LayerClipping,
    ScaledClipping,
)
from discreet.gradients.contributions import Rows

METHODS = ["fused", "functional", "loop"]
RULES = [
    FlatClipping(clip_norm=0.5),
    LayerClipping(clip_norm=0.5),
    LayerClipping(clip_norm=0.5, by="parameter"),
    AutomaticClipping(clip_norm=0.5),
    GlobalClipping(clip_norm=0.5, bound=2.0),
    ScaledClipping(clip_norm=0.5, bound=2.0),
]


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.Tanh(),
        nn.GroupNorm(2, 4),
        nn.Conv2d(4, 3, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(27, 5),
        nn.Linear(5, 3),
    )


def batch(size: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(size, 2, 8, 8, generator=generator)
    return inputs, torch.randint(0, 3, (size,), generator=generator)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_all_engines_give_the_same_sums_for_every_rule(agree, cross_entropy, rule) -> None:
    agree(network(), *batch(6), rule=rule, loss=cross_entropy)


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_batch_sums_to_zero(run, method) -> None:
    outcome = run(network(), *batch(0), method=method)
    assert not outcome.total.any()
    assert outcome.norms.shape == (0, 1)


@pytest.mark.parametrize("method", METHODS)
def test_one_record_gives_its_own_clipped_gradient(run, cross_entropy, method) -> None:
    model = network()
    inputs, targets = batch(1)
    outcome = run(
        model, inputs, targets, method=method, loss=cross_entropy, rule=FlatClipping(clip_norm=1e-3)
    )
    loss = cross_entropy(model(inputs), targets).sum()
    gradient = torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(model.parameters()))])
    torch.testing.assert_close(outcome.total, gradient * 1e-3 / gradient.norm(), rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("microbatch", [1, 3, 7, 100])
def test_the_sum_does_not_depend_on_the_split(run, cross_entropy, method, microbatch) -> None:
    model = network().double()
    inputs, targets = batch(7)
    whole = run(model, inputs.double(), targets, method=method, loss=cross_entropy)
    split = run(model, inputs.double(), targets, method=method, loss=cross_entropy, microbatch=microbatch)
    torch.testing.assert_close(split.total, whole.total, rtol=1e-11, atol=1e-13)
    torch.testing.assert_close(split.norms, whole.norms, rtol=1e-11, atol=1e-13)


def test_the_memory_limit_bounds_the_microbatch(run) -> None:
    model = network()
    small = run(model, *batch(4), memory_limit=20_000).engine.choices["microbatch"]
    large = run(model, *batch(4), memory_limit=2**30).engine.choices["microbatch"]
    assert max(small.values()) < min(large.values())


@pytest.mark.parametrize("method", METHODS)
def test_records_that_are_not_finite_contribute_exactly_nothing(run, cross_entropy, method) -> None:
    model = network()
    inputs, targets = batch(6)
    sound = torch.tensor([0, 2, 3, 5])
    inputs[1, 0, 0, 0] = float("nan")
    inputs[4] = float("inf")
    outcome = run(model, inputs, targets, method=method, loss=cross_entropy)
    assert outcome.not_finite == 2
    expected = run(model, inputs[sound], targets[sound], method=method, loss=cross_entropy)
    torch.testing.assert_close(outcome.total, expected.total, rtol=1e-5, atol=1e-7)
    only_broken = run(model, inputs[[1, 4]], targets[[1, 4]], method=method, loss=cross_entropy)
    assert not only_broken.total.any()


def largest_change(run, model: nn.Module, inputs: Tensor, targets: Tensor, **settings) -> float:
    """By how much the sum changes when one record is left out, for the record that changes it most."""
    whole = run(model, inputs, targets, **settings).total
    changes = []
    for record in range(len(targets)):
        others = [other for other in range(len(targets)) if other != record]
        changes.append(float((whole - run(model, inputs[others], targets[others], **settings).total).norm()))
    return max(changes)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_removing_a_record_changes_the_sum_by_at_most_the_sensitivity(run, rule, scale) -> None:
    model = network().double()
    inputs, targets = batch(3)
    inputs = inputs.double() * torch.tensor([scale, 1.0, 1.0], dtype=torch.float64).view(-1, 1, 1, 1)
    loss = lambda outputs, targets: outputs.sum(1) * (1 + targets) * scale  # noqa: E731
    change = largest_change(run, model, inputs, targets, rule=rule, loss=loss, method="fused")
    assert change <= rule.sensitivity * (1 + 1e-9)


def test_the_same_check_fails_when_one_layers_norm_is_forgotten(run, monkeypatch) -> None:
    monkeypatch.setattr(Rows, "squared", lambda self: torch.zeros(len(self.rows()), dtype=torch.float64))
    loss = lambda outputs, targets: outputs.sum(1) * (1 + targets)  # noqa: E731
    rule = FlatClipping(clip_norm=0.5)
    change = largest_change(run, network(), *batch(3), rule=rule, loss=loss, method="fused")
    assert change > rule.sensitivity


@pytest.mark.parametrize("method", METHODS)
def test_replacing_a_record_leaves_the_others_contributions_alone(run, cross_entropy, method) -> None:
    model = network().double()
    inputs, targets = batch(4)
    inputs = inputs.double()
    others = inputs.clone()
    others[2] = torch.randn_like(others[2]) * 5
    contributions = []
    for version in (inputs, others):
        whole = run(model, version, targets, method=method, loss=cross_entropy)
        alone = run(model, version[2:3], targets[2:3], method=method, loss=cross_entropy)
        contributions.append((whole.total - alone.total, whole.norms[[0, 1, 3]]))
    for first, second in pairwise(contributions):
        torch.testing.assert_close(first, second, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("method", ["fused", "functional"])
def test_the_same_inputs_give_the_same_bits_and_so_does_a_resumed_engine(run, cross_entropy, method) -> None:
    model = network()
    first = run(model, *batch(9), method=method, loss=cross_entropy)
    repeated = torch.empty_like(first.total)
    first.engine.clipped_sum(*batch(9), FlatClipping(clip_norm=0.5), repeated)
    choices = json.loads(json.dumps(first.engine.choices))
    resumed = run(model, *batch(9), method=method, loss=cross_entropy, choices=choices)
    assert torch.equal(repeated, first.total)
    assert torch.equal(resumed.total, first.total)
    assert resumed.engine.choices == choices


def test_choices_do_not_depend_on_the_records_values() -> None:
    model = network()
    choices = {"ways": {}, "method": {}, "microbatch": {}}
    for scale in (1.0, 1e3):
        engine = GradientEngine(model, _sum_loss, FlatLayout.of(model), choices=choices)
        out = engine.layout.zeros()
        inputs, targets = batch(5)
        engine.clipped_sum(inputs * scale, targets, FlatClipping(clip_norm=1.0), out)
        choices = engine.choices
    assert engine.choices == choices


def _sum_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    return outputs.sum(1)


def test_inputs_may_be_tuples_or_dictionaries(run) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.right = nn.Linear(3, 2), nn.Linear(4, 2)

        def forward(self, left: Tensor, right: Tensor) -> Tensor:
            return self.left(left) * self.right(right)

    model, targets = Two(), torch.zeros(5)
    left, right = torch.randn(5, 3), torch.randn(5, 4)
    totals = [
        run(model, inputs, targets, method=method).total
        for method in METHODS
        for inputs in ((left, right), {"right": right, "left": left})
    ]
    for total in totals[1:]:
        torch.testing.assert_close(total, totals[0], rtol=1e-5, atol=1e-7)


def test_views_of_a_record_are_averaged_before_clipping(run, cross_entropy) -> None:
    model = network().double()
    inputs = torch.randn(4, 3, 2, 8, 8, dtype=torch.float64)
    targets = torch.randint(0, 3, (4, 1)).expand(4, 3)
    settings = {"loss": cross_entropy, "views": 3, "rule": FlatClipping(clip_norm=0.1)}
    totals = [run(model, inputs, targets, method=method, **settings).total for method in METHODS]
    for total in totals[:2]:
        torch.testing.assert_close(total, totals[2], rtol=1e-10, atol=1e-12)
    same = inputs[:, :1].expand(4, 3, 2, 8, 8)
    repeated = run(model, same, targets, method="fused", **settings).total
    single = run(
        model, inputs[:, 0], targets[:, 0], loss=cross_entropy, rule=FlatClipping(clip_norm=0.1)
    ).total
    torch.testing.assert_close(repeated, single, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ambient", [False, True])
def test_under_autocast_only_the_forward_pass_is_coarse(run, cross_entropy, method, ambient) -> None:
    model = network()
    inputs, targets = batch(1)
    rule = FlatClipping(clip_norm=1e-3)
    with torch.autocast("cpu", enabled=ambient):
        found = run(
            model, inputs, targets, method=method, loss=cross_entropy, rule=rule, autocast=torch.bfloat16
        )
        exact = run(model, inputs, targets, method=method, loss=cross_entropy, rule=rule)
    assert float(found.total.norm()) == pytest.approx(1e-3, rel=2e-5)
    assert float(found.total.norm()) <= 1e-3
    assert 1e-6 < float((found.total - exact.total).norm()) < 1e-4


@pytest.mark.parametrize("method", METHODS)
def test_the_callers_gradient_mode_does_not_matter(run, cross_entropy, method) -> None:
    model = network()
    expected = run(model, *batch(3), method=method, loss=cross_entropy)
    with torch.no_grad():
        found = run(model, *batch(3), method=method, loss=cross_entropy, choices=expected.engine.choices)
    assert torch.equal(found.total, expected.total)
    assert not found.total.requires_grad


def test_one_engine_takes_batches_of_any_size(run, cross_entropy) -> None:
    model = network().double()
    inputs, targets = batch(9)
    engine = run(model, inputs.double(), targets, method="fused", loss=cross_entropy).engine
    total = engine.layout.zeros()
    for size in (2, 9, 1, 0, 5):
        engine.clipped_sum(inputs[:size].double(), targets[:size], FlatClipping(clip_norm=0.5), total)
        expected = run(model, inputs[:size].double(), targets[:size], method="loop", loss=cross_entropy).total
        torch.testing.assert_close(total, expected, rtol=1e-10, atol=1e-12)


def test_gradients_of_the_parameters_are_not_touched(run, cross_entropy) -> None:
    model = network()
    run(model, *batch(3), method="fused", loss=cross_entropy)
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"microbatch": 0}, "microbatch"),
        ({"memory_limit": 0}, "memory_limit"),
        ({"method": "fast"}, "method"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(run, settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        run(network(), *batch(2), **settings)


def test_the_output_must_fit_the_layout() -> None:
    model = network()
    engine = GradientEngine(model, _sum_loss, FlatLayout.of(model))
    with pytest.raises(ValueError, match="flat vector"):
        engine.clipped_sum(*batch(2), FlatClipping(clip_norm=1.0), torch.zeros(3))
    with pytest.raises(ValueError, match="type"):
        engine.clipped_sum(*batch(2), FlatClipping(clip_norm=1.0), engine.layout.zeros().double())


def test_the_fused_engine_alone_refuses_what_it_cannot_do_exactly(run) -> None:
    model = _Einsum()
    with pytest.raises(UserError, match="cannot treat this model exactly"):
        run(model, torch.randn(3, 4), torch.zeros(3), method="fused")


class _Einsum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 2))

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.einsum("bi,ij->bj", inputs, self.weight)


def test_other_models_fall_back_to_torch_func_with_one_announcement(run) -> None:
    with pytest.warns(UserWarning, match="einsum") as announced:
        found = run(_Einsum(), torch.randn(3, 4), torch.zeros(3))
    assert len(announced) == 1
    assert set(found.engine.choices["method"].values()) == {"functional"}

"""What the fused engine cannot see or cannot treat exactly, it refuses; nothing slips by."""

import pytest
import torch
from torch import Tensor, nn

from discreet.errors import UserError
from discreet.gradients.axes import RecordAxis, find_axis
from discreet.gradients.slots import UnsupportedError
from discreet.gradients.tape import Tape


class Hidden(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs, weight):
        ctx.save_for_backward(inputs, weight)
        return inputs * weight

    @staticmethod
    def backward(ctx, gradient):
        inputs, weight = ctx.saved_tensors
        return gradient * weight, (gradient * inputs).sum(0)


class UsesHidden(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.weight = nn.Linear(4, 4), nn.Parameter(torch.randn(4))

    def forward(self, inputs: Tensor) -> Tensor:
        return Hidden.apply(self.first(inputs), self.weight)


class Detached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs @ self.weight + inputs @ self.weight.detach()


class Standardized(nn.Linear):
    def forward(self, inputs: Tensor) -> Tensor:
        weight = self.weight - self.weight.mean(1, keepdim=True)
        return nn.functional.linear(inputs, weight, self.bias)


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.positions = nn.Linear(4, 4), nn.Embedding(4, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layer(inputs) * self.positions(torch.arange(4)).sum(0)


class ChangedInPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = inputs * 2
        output = self.layer(hidden)
        hidden.add_(1)
        return output + hidden


AWKWARD = [UsesHidden(), Detached(), Standardized(4, 4), Shared(), ChangedInPlace()]


@pytest.mark.parametrize("model", AWKWARD, ids=lambda model: type(model).__name__)
def test_what_has_no_exact_rule_is_refused(run, model) -> None:
    with pytest.raises(UserError, match="cannot treat this model exactly"):
        run(model, torch.randn(3, 4), torch.zeros(3), method="fused")


@pytest.mark.parametrize(
    "model", [Detached(), Standardized(4, 4), Shared()], ids=lambda model: type(model).__name__
)
@pytest.mark.filterwarnings("ignore:per-record gradients by torch.func")
def test_and_is_exact_by_the_fallback(run, model) -> None:
    inputs = torch.randn(3, 4)
    found, expected = (run(model, inputs, torch.zeros(3), method=method).total for method in ("auto", "loop"))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-7)


def test_without_its_guard_the_tape_would_miss_a_hidden_parameter(run, monkeypatch) -> None:
    model, inputs = UsesHidden(), torch.randn(3, 4)
    monkeypatch.setattr(Tape, "guarded", lambda self: torch.enable_grad())
    found, expected = (
        run(model, inputs, torch.zeros(3), method=method).total for method in ("fused", "loop")
    )
    assert float((found - expected).norm()) > 0.01


def shapes(*sizes: int) -> torch.Size:
    return torch.Size(sizes)


def of_record(*entries: int) -> Tensor:
    gradient = torch.zeros(6, 2)
    gradient[list(entries)] = 1
    return gradient


def test_flattened_records_are_told_apart_by_their_gradients() -> None:
    two, three = shapes(4, 2), shapes(6, 2)
    major = [of_record(0, 1), of_record(2, 3), of_record(4, 5)]
    minor = [of_record(0, 3), of_record(1, 4), of_record(2, 5)]
    assert find_axis("layer", two, three, major) == RecordAxis(0, 2, True)
    assert find_axis("layer", two, three, minor) == RecordAxis(0, 2, False)


@pytest.mark.parametrize(
    ("two", "three", "gradients"),
    [
        (shapes(4, 2), shapes(6, 2), [of_record(0, 2), of_record(1, 3), of_record(4, 5)]),
        (shapes(4, 2), shapes(6, 2), [None, None, None]),
        (shapes(5, 2), shapes(5, 2), [None, None, None]),
        (shapes(2, 2), shapes(3, 3), [None, None, None]),
        (shapes(3, 2), shapes(4, 2), [None, None, None]),
    ],
)
def test_outputs_in_which_records_cannot_be_told_apart_are_refused(two, three, gradients) -> None:
    with pytest.raises(UnsupportedError):
        find_axis("layer", two, three, gradients)


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(4, 4, batch_first=True)

    def forward(self, inputs: Tensor) -> Tensor:
        lengths = torch.full((len(inputs),), inputs.shape[1])
        packed = nn.utils.rnn.pack_padded_sequence(inputs, lengths, batch_first=True)
        return self.layer(packed)[1][0]


def test_what_torch_func_cannot_do_either_goes_one_by_one(run) -> None:
    inputs = torch.randn(3, 5, 4)
    with pytest.warns(UserWarning, match="one by one"):
        found = run(Packed(), inputs, torch.zeros(3))
    assert set(found.engine.choices["method"].values()) == {"loop"}
    assert found.total.isfinite().all()
    with pytest.raises(UserError, match=r"torch\.func cannot"):
        run(Packed(), inputs, torch.zeros(3), method="functional")

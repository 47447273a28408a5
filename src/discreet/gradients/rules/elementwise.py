"""Parameters that are added to or multiplied with data, broadcast along some dimensions; PReLU."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from discreet.gradients.axes import RecordAxis
from discreet.gradients.contributions import Contribution, Rows
from discreet.gradients.slots import Slot, UnsupportedError
from discreet.gradients.tape import Rule, Tape


def add(tape: Tape, input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """Data plus parameter, or parameter plus data."""
    data, parameter = _ordered(tape, input, other, "addition")
    if alpha != 1:
        raise UnsupportedError("addition of a trainable parameter with a factor")
    output = data + tape.plain(parameter)
    return _watched(tape, "addition", output, parameter, lambda gradient: gradient)


def multiply(tape: Tape, input: Any, other: Any) -> Tensor:
    """Data times parameter, or parameter times data."""
    data, parameter = _ordered(tape, input, other, "multiplication")
    output, factor = data * tape.plain(parameter), tape.remember(data)
    return _watched(tape, "multiplication", output, parameter, lambda gradient: gradient * factor())


def prelu(tape: Tape, input: Tensor, weight: Tensor) -> Tensor:
    """F.prelu."""
    along = weight.view(-1, *(1,) * max(0, input.dim() - 2)) if weight.numel() > 1 else weight
    output, negative = torch.prelu(input, tape.plain(weight)), input.detach().clamp(max=0)
    return _watched(tape, "prelu", output, along, lambda gradient: gradient * negative)


def _ordered(tape: Tape, input: Any, other: Any, what: str) -> tuple[Tensor, Tensor]:
    tensors = [value for value in (input, other) if isinstance(value, Tensor)]
    parameters = [value for value in tensors if tape.slots.covers(value)]
    if len(tensors) != 2 or len(parameters) != 1:
        raise UnsupportedError(f"{what} of trainable parameters among themselves")
    (parameter,) = parameters
    return (other if parameter is input else input), parameter


def _watched(
    tape: Tape, what: str, output: Tensor, parameter: Tensor, scaled: Callable[[Tensor], Tensor]
) -> Tensor:
    slot = tape.slot(parameter)
    shape = parameter.shape

    def receive(gradient: Tensor, axis: RecordAxis) -> list[tuple[Slot, Contribution]]:
        assert slot is not None
        lead = gradient.dim() - len(shape)
        if axis.dim >= lead and shape[axis.dim - lead] != 1:
            raise UnsupportedError(f"{what} of a trainable parameter that spans the records")
        rows = axis.front(scaled(gradient)).sum(1)
        # The record dimension is now in front and gone from where it was; what is left lines up from the
        # right.
        kept = [size for dim, size in enumerate(shape) if lead + dim != axis.dim]
        rows = rows.sum_to_size(rows.shape[0], *(1,) * (rows.dim() - 1 - len(kept)), *kept)
        return [(slot, Rows(rows.reshape(rows.shape[0], *shape)))]

    return tape.watch(what, output, (slot,), receive)


RULES: dict[Any, Rule] = {
    function: rule
    for rule, functions in (
        (add, (torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__)),
        (multiply, (torch.mul, torch.multiply, Tensor.mul, Tensor.__mul__, Tensor.__rmul__)),
        (prelu, (torch.prelu, F.prelu)),
    )
    for function in functions
}

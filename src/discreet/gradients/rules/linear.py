"""Linear layers and products with a trainable matrix, with any leading dimensions."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from discreet.gradients.axes import RecordAxis
from discreet.gradients.contributions import Contribution, Rows
from discreet.gradients.sequences import Positions, outer_products
from discreet.gradients.slots import Slot, UnsupportedError
from discreet.gradients.tape import Rule, Tape


def linear(tape: Tape, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """F.linear."""
    weight_slot, bias_slot = tape.slot(weight), tape.slot_or_none(bias)
    output = F.linear(input, tape.plain(weight), tape.plain_or_none(bias))
    use, inputs = tape.uses, tape.remember(input)

    def receive(gradient: Tensor, axis: RecordAxis) -> list[tuple[Slot, Contribution]]:
        found: list[tuple[Slot, Contribution]] = []
        left = sequence(gradient, axis)
        if weight_slot is not None:
            right = sequence(inputs(), axis)
            if tape.shared(weight_slot):
                found.append((weight_slot, Positions(left, right, tape.buffers)))
            else:
                found.append((weight_slot, outer_products(left, right, tape.buffers, tape.choices, use)))
        if bias_slot is not None:
            found.append((bias_slot, Rows(left[:, 0] if left.shape[1] == 1 else left.sum(1))))
        return found

    return tape.watch("linear", output, (weight_slot, bias_slot), receive)


def matmul(tape: Tape, input: Tensor, other: Tensor) -> Tensor:
    """Input @ W for a trainable matrix W."""
    if tape.slot(input) is not None or other.dim() != 2:
        raise UnsupportedError(
            "matmul of a trainable parameter other than on the right and with two dimensions"
        )
    return linear(tape, input, other.t())


def sequence(tensor: Tensor, axis: RecordAxis) -> Tensor:
    """[..., features] as [B, T, features]."""
    if axis.dim >= tensor.dim() - 1:
        raise UnsupportedError("a linear layer has the records along its features")
    front = axis.front(tensor)
    return front.reshape(front.shape[0], -1, front.shape[-1])


RULES: dict[Any, Rule] = {
    F.linear: linear,
    torch.matmul: matmul,
    torch.mm: matmul,
    Tensor.matmul: matmul,
    Tensor.__matmul__: matmul,
    Tensor.mm: matmul,
}

"""Normalisation within a record: group, layer, instance and root-mean-square, with their scales and shifts.

All of them normalise and then multiply by a scale and add a shift along some dimensions, so a record's
gradient is a sum over its positions of gradient times normalised input, and of gradient.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from discreet.gradients.axes import RecordAxis
from discreet.gradients.contributions import Contribution, Rows
from discreet.gradients.slots import Slot, UnsupportedError
from discreet.gradients.tape import Rule, Tape

Reduce = Callable[[Tensor, RecordAxis], Tensor]


def group_norm(
    tape: Tape,
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """F.group_norm."""
    slots = tape.slot_or_none(weight), tape.slot_or_none(bias)
    records, channels = input.shape[:2]
    output, mean, deviation = torch.native_group_norm(
        input,
        tape.plain_or_none(weight),
        tape.plain_or_none(bias),
        records,
        channels,
        input[0, 0].numel(),
        num_groups,
        eps,
    )
    inputs, mean, deviation = tape.remember(input), mean.detach(), deviation.detach()

    def receive(gradient: Tensor, axis: RecordAxis) -> list[tuple[Slot, Contribution]]:
        shift = _sums(gradient)
        each = channels // num_groups
        scale = _inner(gradient, inputs())
        scale.addcmul_(shift, mean.repeat_interleave(each, 1), value=-1).mul_(
            deviation.repeat_interleave(each, 1)
        )
        return _affine(slots, _channel_rows(scale, axis), _channel_rows(shift, axis))

    return tape.watch("group_norm", output, slots, receive)


def layer_norm(
    tape: Tape,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """F.layer_norm."""
    slots = tape.slot_or_none(weight), tape.slot_or_none(bias)
    output, mean, deviation = torch.native_layer_norm(
        input, normalized_shape, tape.plain_or_none(weight), tape.plain_or_none(bias), eps
    )
    inputs, mean, deviation = tape.remember(input), mean.detach(), deviation.detach()

    def receive(gradient: Tensor, axis: RecordAxis) -> list[tuple[Slot, Contribution]]:
        scaled = gradient * ((inputs() - mean) * deviation)
        return _affine(
            slots,
            _trailing_rows(scaled, axis, normalized_shape),
            _trailing_rows(gradient, axis, normalized_shape),
        )

    return tape.watch("layer_norm", output, slots, receive)


def rms_norm(
    tape: Tape,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """F.rms_norm."""
    assert weight is not None
    slots = tape.slot(weight), None
    normalized = F.rms_norm(input, list(normalized_shape), None, eps)
    output, recalled = normalized * tape.plain(weight), tape.remember(normalized)

    def receive(gradient: Tensor, axis: RecordAxis) -> list[tuple[Slot, Contribution]]:
        rows = _trailing_rows(gradient * recalled(), axis, normalized_shape)
        return _affine(slots, rows, rows)

    return tape.watch("rms_norm", output, slots, receive)


def instance_norm(
    tape: Tape,
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """F.instance_norm."""
    if running_mean is not None or not use_input_stats:
        raise UnsupportedError("instance_norm with running statistics")
    slots = tape.slot_or_none(weight), tape.slot_or_none(bias)
    normalized = F.instance_norm(input, eps=eps)
    along = (-1, *(1,) * (input.dim() - 2))
    output = normalized
    if weight is not None:
        output = output * tape.plain(weight).view(along)
    if bias is not None:
        output = output + tape.plain(bias).view(along)
    recalled = tape.remember(normalized)

    def receive(gradient: Tensor, axis: RecordAxis) -> list[tuple[Slot, Contribution]]:
        scale, shift = _inner(gradient, recalled()), _sums(gradient)
        return _affine(slots, _channel_rows(scale, axis), _channel_rows(shift, axis))

    return tape.watch("instance_norm", output, slots, receive)


def _sums(gradient: Tensor) -> Tensor:
    """Sums over positions, [N, C]."""
    return gradient.flatten(2).sum(2) if gradient.dim() > 2 else gradient


def _inner(gradient: Tensor, inputs: Tensor) -> Tensor:
    """Sums over positions of the products, [N, C]."""
    if gradient.is_contiguous() and inputs.is_contiguous():
        rows, columns = gradient.view(-1, 1, gradient[0, 0].numel()), inputs.view(-1, inputs[0, 0].numel(), 1)
        return torch.bmm(rows, columns).view(gradient.shape[:2])
    return _sums(gradient * inputs)


def _channel_rows(sums: Tensor, axis: RecordAxis) -> Tensor:
    if axis.dim != 0:
        raise UnsupportedError("a normalisation has the records elsewhere than in dimension 0")
    front = axis.front(sums)
    return front[:, 0] if axis.blocks == 1 else front.sum(1)


def _trailing_rows(products: Tensor, axis: RecordAxis, shape: Sequence[int]) -> Tensor:
    if axis.dim >= products.dim() - len(shape):
        raise UnsupportedError("a normalisation has the records within what it normalises")
    front = axis.front(products)
    return front.reshape(front.shape[0], -1, *shape).sum(1)


def _affine(
    slots: tuple[Slot | None, Slot | None], scale: Tensor, shift: Tensor
) -> list[tuple[Slot, Contribution]]:
    pairs = zip(slots, (scale, shift), strict=True)
    return [(slot, Rows(rows)) for slot, rows in pairs if slot is not None]


RULES: dict[Any, Rule] = {
    F.group_norm: group_norm,
    F.layer_norm: layer_norm,
    F.instance_norm: instance_norm,
    **({F.rms_norm: rms_norm} if hasattr(F, "rms_norm") else {}),
}

"""Convolutions and transposed convolutions in one, two and three dimensions."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from discreet.gradients.axes import RecordAxis
from discreet.gradients.contributions import Contribution, Rows
from discreet.gradients.convolutions import Geometry, Images, grouped, kept
from discreet.gradients.slots import Slot, UnsupportedError
from discreet.gradients.tape import Rule, Tape

Numbers = int | Sequence[int]


def convolution(
    function: Any,
    dims: int,
    tape: Tape,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Tensor:
    """F.conv1d, F.conv2d and F.conv3d."""
    if isinstance(padding, str):
        input, padding = _pad_for_same(input, weight, padding, dilation, dims)
    geometry = Geometry(
        stride=_spread(stride, dims),
        padding=_spread(padding, dims),
        dilation=_spread(dilation, dims),
        groups=groups,
    )
    settings = (geometry.stride, geometry.padding, geometry.dilation, groups)
    return _watched(
        tape, partial(function, **dict(zip(_SETTINGS, settings, strict=True))), geometry, input, weight, bias
    )


def transposed(
    function: Any,
    dims: int,
    tape: Tape,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
) -> Tensor:
    """F.conv_transpose1d, F.conv_transpose2d and F.conv_transpose3d."""
    geometry = Geometry(
        stride=_spread(stride, dims),
        padding=_spread(padding, dims),
        dilation=_spread(dilation, dims),
        groups=groups,
        output_padding=_spread(output_padding, dims),
    )
    run = partial(
        function,
        stride=geometry.stride,
        padding=geometry.padding,
        output_padding=geometry.output_padding,
        groups=groups,
        dilation=geometry.dilation,
    )
    return _watched(tape, run, geometry, input, weight, bias)


_SETTINGS = ("stride", "padding", "dilation", "groups")


def _watched(
    tape: Tape, run: Any, geometry: Geometry, input: Tensor, weight: Tensor, bias: Tensor | None
) -> Tensor:
    if input.dim() != weight.dim():
        raise UnsupportedError("a convolution of an input without a record dimension")
    weight_slot, bias_slot = tape.slot(weight), tape.slot_or_none(bias)
    input, plain_weight = tape.in_format(input), tape.plain(weight)
    output = run(input, tape.in_format(plain_weight), tape.plain_or_none(bias))
    use, inputs, kernel = tape.uses, tape.remember(input), tuple(weight.shape)

    def receive(gradient: Tensor, axis: RecordAxis) -> list[tuple[Slot, Contribution]]:
        if axis.dim != 0:
            raise UnsupportedError("a convolution has the records elsewhere than in dimension 0")
        found: list[tuple[Slot, Contribution]] = []
        if weight_slot is not None:
            images = Images(
                inputs=inputs(),
                gradients=gradient,
                kernel=kernel,
                geometry=geometry,
                buffers=tape.buffers,
                use=use,
            )
            found.append((weight_slot, _by_record(images, axis, tape)))
        if bias_slot is not None:
            found.append((bias_slot, Rows(axis.front(gradient.flatten(2).sum(2)).sum(1))))
        return found

    return tape.watch("convolution", output, (weight_slot, bias_slot), receive)


def _by_record(images: Images, axis: RecordAxis, tape: Tape) -> Contribution:
    if axis.blocks == 1:
        return images.contribution(tape.choices)
    return Rows(axis.front(kept(images, grouped).rows()).sum(1))


def _spread(value: Numbers, dims: int) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * dims
    return tuple(value) * dims if len(value) == 1 else tuple(value)


def _pad_for_same(
    input: Tensor, weight: Tensor, padding: str, dilation: Numbers, dims: int
) -> tuple[Tensor, int]:
    if padding == "same":
        sides: list[int] = []
        for step, length in zip(reversed(_spread(dilation, dims)), reversed(weight.shape[2:]), strict=True):
            total = step * (length - 1)
            sides += [total // 2, total - total // 2]
        input = F.pad(input, sides)
    return input, 0


RULES: dict[Any, Rule] = {
    F.conv1d: partial(convolution, F.conv1d, 1),
    F.conv2d: partial(convolution, F.conv2d, 2),
    F.conv3d: partial(convolution, F.conv3d, 3),
    F.conv_transpose1d: partial(transposed, F.conv_transpose1d, 1),
    F.conv_transpose2d: partial(transposed, F.conv_transpose2d, 2),
    F.conv_transpose3d: partial(transposed, F.conv_transpose3d, 3),
}

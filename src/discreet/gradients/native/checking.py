"""A few small cases, before compiled kernels are relied on: a compiler can be wrong, and a file can rot."""

import torch
import torch.nn.functional as F
from torch import Tensor

from discreet.gradients.native.kernels import Kernels

_TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


class WrongResult(Exception):
    """The compiled kernels give other results than torch does."""


def check(kernels: Kernels) -> None:
    """Compare the kernels with torch's own gradients.

    Raises:
        WrongResult: They differ.
    """
    generator = torch.Generator().manual_seed(0)
    for dtype in _TOLERANCE:
        for channels, outputs, groups in ((3, 5, 1), (20, 9, 1), (4, 6, 2)):
            _check_windows(kernels, channels, outputs, groups, dtype, generator)
        for units in (3, 16):
            _check_lstm(kernels, units, dtype, generator)


def _check_windows(
    kernels: Kernels, channels: int, outputs: int, groups: int, dtype: torch.dtype, generator: torch.Generator
) -> None:
    inputs = torch.randn(3, channels, 7, 6, generator=generator, dtype=torch.float64).to(dtype)
    kernel = torch.zeros(outputs, channels // groups, 3, 2, dtype=dtype, requires_grad=True)
    stride, padding, dilation = (2, 1), (1, 0), (1, 2)
    expected, gradients = [], []
    with torch.enable_grad():
        for record in inputs:
            output = F.conv2d(record.unsqueeze(0), kernel, None, stride, padding, dilation, groups)
            above = torch.randn(output.shape, generator=generator, dtype=torch.float64).to(dtype)
            expected.append(torch.autograd.grad(output, kernel, above)[0])
            gradients.append(above)
    rows = inputs.new_empty(3, outputs, 3, 2, channels // groups)
    squared = kernels.windows(
        inputs, torch.cat(gradients), (3, 2), stride, padding, dilation, groups=groups, out=rows
    )
    wanted = torch.stack(expected)
    _require(rows.permute(0, 1, 4, 2, 3), wanted)
    _require(squared.to(dtype), wanted.double().square().flatten(1).sum(1).to(dtype))


def _check_lstm(kernels: Kernels, units: int, dtype: torch.dtype, generator: torch.Generator) -> None:
    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    records, steps, width = 9, 5, 4
    shapes = ((4 * units, width), (4 * units, units), (4 * units,), (4 * units,))
    directions = [[random(*shape) for shape in shapes] for _ in range(2)]
    inputs, state, memory = (
        random(records, steps, width),
        random(2, records, units),
        random(2, records, units),
    )
    above = random(records, steps, 2 * units)
    gates = torch.cat([F.linear(inputs, direction[0]) for direction in directions], dim=2)
    weight = torch.stack([direction[1] for direction in directions])
    bias = torch.stack([direction[2] + direction[3] for direction in directions])
    with torch.enable_grad():
        biases = [direction[2].requires_grad_() for direction in directions]
        starts = [start.clone().requires_grad_() for start in (state, memory)]
        parameters = [parameter for direction in directions for parameter in direction]
        output, last, last_memory = torch.lstm(inputs, starts, parameters, True, 1, 0.0, False, True, True)
        one = torch.ones((), dtype=dtype)
        wanted = torch.autograd.grad(
            (output, last.sum(), last_memory.sum()), (*biases, *starts), (above, one, one)
        )
    forward = kernels.lstm_forward(gates, weight, bias, state, memory)
    backward = kernels.lstm_backward(
        forward, above, torch.ones_like(last), torch.ones_like(last), weight, torch.empty_like(gates)
    )
    _require(forward.output, output.detach())
    _require(forward.state, last.detach())
    _require(forward.memory, last_memory.detach())
    for found, expected in zip(backward.gates.sum((0, 1)).chunk(2), wanted[:2], strict=True):
        _require(found, expected)
    _require(backward.state, wanted[2])
    _require(backward.memory, wanted[3])


def _require(found: Tensor, expected: Tensor) -> None:
    distance = float((found.double() - expected.double()).norm())
    if not distance <= _TOLERANCE[found.dtype] * float(expected.double().norm()):
        raise WrongResult(f"the compiled kernels are off by {distance:.2g}")

"""The compiled kernels as functions of tensors."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

_SPACE = 3
_NAMES = {torch.float32: "float32", torch.float64: "float64"}
_Three = ctypes.c_int64 * _SPACE


def _numbers(*names: str) -> list[tuple[str, type[ctypes.c_int64]]]:
    return [(name, ctypes.c_int64) for name in names]


class _Windows(ctypes.Structure):
    """`discreet::Windows`."""

    _fields_ = (
        *_numbers("records", "groups", "channels", "outputs"),
        *((name, _Three) for name in ("size", "positions", "kernel", "stride", "padding", "dilation")),
        *_numbers("input_record", "input_channel"),
        ("input_step", _Three),
        *_numbers("gradient_record", "gradient_output", "gradient_position"),
    )


class _Recurrence(ctypes.Structure):
    """`discreet::Recurrence`."""

    _fields_ = tuple(
        _numbers(
            "steps",
            "records",
            "directions",
            "units",
            "input_step",
            "input_record",
            "output_step",
            "output_record",
        )
    )


@dataclass(frozen=True, kw_only=True)
class LSTMForward:
    """What the forward pass of an LSTM gives, and what its backward pass needs.

    Attributes:
        output: [B, T, D H].
        state: The last states, [D, B, H].
        memory: The last memories, [D, B, H].
        before: The states with which each step began, [D, B, T, H] in the order of time.
        gates: The gates' values, in the kernels' own shape.
        memories: The memories, in the kernels' own shape.
    """

    output: Tensor
    state: Tensor
    memory: Tensor
    before: Tensor
    gates: Tensor
    memories: Tensor


@dataclass(frozen=True, kw_only=True)
class LSTMBackward:
    """The gradients of an LSTM's gates [B, T, D 4 H], and of its first state and memory [D, B, H]."""

    gates: Tensor
    state: Tensor
    memory: Tensor


Fresh = Callable[[str, tuple[int, ...], Tensor], Tensor]


def _fresh(name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
    return like.new_empty(shape)


class Kernels:
    """Kernels for tensors in main memory, in float32 and float64.

    Every record is computed by one thread from beginning to end, so results depend neither on the number of threads
    nor on the other records.

    Args:
        path: The compiled library.

    Attributes:
        path: The compiled library.
        key: What the library was compiled from and for; the same key gives the same results.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.key = path, path.stem
        self._library = ctypes.CDLL(str(path))
        self._rows: int = self._library.discreet_rows()
        self._bytes: int = self._library.discreet_bytes()

    def take(self, tensor: Tensor) -> bool:
        """Whether the kernels can work on this tensor."""
        return tensor.device.type == "cpu" and tensor.dtype in _NAMES

    def windows(
        self,
        inputs: Tensor,
        gradients: Tensor,
        kernel: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        dilation: tuple[int, ...],
        *,
        groups: int = 1,
        out: Tensor | None = None,
    ) -> Tensor:
        """Each record's squared norm, [B] in float64, of the gradient of a kernel that moves over its input.

        Args:
            inputs: [B, C, ...].
            gradients: The gradients of what the kernel gave, [B, O, ...].
            kernel: The lengths of its dimensions of space, three at most.
            stride: How it moved, for each dimension.
            padding: The zeros on each side.
            dilation: The distance between its points.
            groups: Into how many parts channels and outputs fall.
            out: [B, O, *kernel, C / groups], contiguous: filled with the gradients, if it is given.
        """
        gradients = _with_even_steps(gradients)
        records, channels = inputs.shape[:2]
        outputs = gradients.shape[1]
        shape = _Windows(
            records=records,
            groups=groups,
            channels=channels // groups,
            outputs=outputs // groups,
            size=_three(inputs.shape[2:], 1),
            positions=_three(gradients.shape[2:], 1),
            kernel=_three(kernel, 1),
            stride=_three(stride, 1),
            padding=_three(padding, 0),
            dilation=_three(dilation, 1),
            input_record=inputs.stride(0),
            input_channel=inputs.stride(1),
            input_step=_three(inputs.stride()[2:], 0),
            gradient_record=gradients.stride(0),
            gradient_output=gradients.stride(1),
            gradient_position=_step(gradients),
        )
        if out is not None:
            _require(out, (records, outputs, *kernel, channels // groups), inputs)
        squared = torch.empty(records, dtype=torch.float64)
        self._call("windows", inputs, shape, inputs, gradients, out, squared)
        return squared

    def products(self, left: Tensor, right: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Each record's squared norm, [B] in float64, of the sum over positions of outer products.

        Args:
            left: [B, T, m].
            right: [B, T, n].
            out: [B, m, n], contiguous: filled with the sums, if it is given.
        """
        records, _, m = left.shape
        rows = None if out is None else out.view(records, m, 1, -1)
        inputs, gradients = right.transpose(1, 2), left.transpose(1, 2)
        return self.windows(inputs, gradients, (1,), (1,), (0,), (1,), out=rows)

    def lstm_forward(
        self,
        inputs: Tensor,
        weight: Tensor,
        bias: Tensor,
        state: Tensor,
        memory: Tensor,
        fresh: Fresh = _fresh,
    ) -> LSTMForward:
        """Run an LSTM.

        Args:
            inputs: The inputs' part of the gates, [B, T, D 4 H].
            weight: The recurrent matrices, [D, 4 H, H].
            bias: [D, 4 H].
            state: The first states, [D, B, H].
            memory: The first memories, [D, B, H].
            fresh: Where memory comes from: a function of a name, a shape and a tensor of that type.
        """
        inputs = _with_dense_features(inputs)
        records, steps, _ = inputs.shape
        directions, _, units = state.shape
        lanes = self._bytes // inputs.element_size()
        padded, blocks = -(-units // lanes) * lanes, -(-records // self._rows)
        output = inputs.new_empty(records, steps, directions * units)
        found = LSTMForward(
            output=output,
            state=state.new_empty(state.shape),
            memory=memory.new_empty(memory.shape),
            before=fresh("before", (directions, records, steps, units), inputs),
            gates=fresh("gates", (directions, blocks, steps, self._rows, 4, padded), inputs),
            memories=fresh("memory", (directions, blocks, steps + 1, self._rows, padded), inputs),
        )
        self._call(
            "lstm_forward",
            inputs,
            _recurrence(inputs, output, state),
            inputs,
            weight.contiguous(),
            bias.contiguous(),
            state.contiguous(),
            memory.contiguous(),
            found.gates,
            found.memories,
            found.before,
            found.output,
            found.state,
            found.memory,
        )
        return found

    def lstm_backward(
        self,
        forward: LSTMForward,
        above: Tensor,
        state: Tensor,
        memory: Tensor,
        weight: Tensor,
        gates: Tensor,
    ) -> LSTMBackward:
        """Propagate gradients back through an LSTM.

        Args:
            forward: What the forward pass gave.
            above: The output's gradient, [B, T, D H].
            state: That of the last states, [D, B, H].
            memory: That of the last memories, [D, B, H].
            weight: The recurrent matrices, [D, 4 H, H].
            gates: [B, T, D 4 H], contiguous: filled with the gradients of the gates.
        """
        above = _with_dense_features(above)
        found = LSTMBackward(
            gates=gates,
            state=state.clone(memory_format=torch.contiguous_format),
            memory=memory.clone(memory_format=torch.contiguous_format),
        )
        shape = _recurrence(gates, above, state)
        kept = forward.gates, forward.memories
        self._call(
            "lstm_backward", gates, shape, above, weight.contiguous(), *kept, gates, found.state, found.memory
        )
        return found

    def _call(self, name: str, like: Tensor, shape: ctypes.Structure, *tensors: Tensor | None) -> None:
        function = self._library[f"discreet_{name}_{_NAMES[like.dtype]}"]
        pointers = [ctypes.c_void_p(None if tensor is None else tensor.data_ptr()) for tensor in tensors]
        if function(ctypes.byref(shape), *pointers, ctypes.c_int(torch.get_num_threads())):
            raise MemoryError(f"the kernel {name} finds no memory")


def _three(numbers: tuple[int, ...] | torch.Size, fill: int) -> ctypes.Array[ctypes.c_int64]:
    return _Three(*(fill,) * (_SPACE - len(numbers)), *numbers)


def _recurrence(inputs: Tensor, output: Tensor, state: Tensor) -> _Recurrence:
    return _Recurrence(
        steps=inputs.shape[1],
        records=inputs.shape[0],
        directions=state.shape[0],
        units=state.shape[2],
        input_step=inputs.stride(1),
        input_record=inputs.stride(0),
        output_step=output.stride(1),
        output_record=output.stride(0),
    )


def _with_dense_features(tensor: Tensor) -> Tensor:
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _with_even_steps(gradients: Tensor) -> Tensor:
    """Gradients [B, O, ...] whose positions, taken in order, lie at equal distances; channels last stays so."""
    step = _step(gradients)
    for length, stride in zip(reversed(gradients.shape[2:]), reversed(gradients.stride()[2:]), strict=True):
        # Along a dimension of length 1 nobody steps, and its stride may be anything.
        if length > 1 and stride != step:
            return gradients.contiguous()
        step *= length
    return gradients


def _step(gradients: Tensor) -> int:
    """The distance between neighbouring positions of gradients [B, O, ...]."""
    steps = zip(reversed(gradients.shape[2:]), reversed(gradients.stride()[2:]), strict=True)
    return next((stride for length, stride in steps if length > 1), 1)


def _require(out: Tensor, shape: tuple[int, ...], like: Tensor) -> None:
    if out.shape != shape or not out.is_contiguous() or out.dtype != like.dtype:
        raise ValueError(f"out must be contiguous, of shape {shape} and of type {like.dtype}")

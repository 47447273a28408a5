"""Recurrent layers over whole sequences, both directions at once, with explicit gradients of the gates.

Inside, tensors are [T, D, B, ...]: steps in the order in which the layer takes them, directions, records.
Outside they are [T, B, D ...] in the order of time, and `steps_of` gives the pieces that belong to each step.
The loops over steps do only what depends on the step before; everything else is done for all steps at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from discreet.gradients.buffers import Buffers


@dataclass
class Workspace:
    """Memory of one use of a layer, and what its backward pass leaves for the recurrent matrix.

    Attributes:
        buffers: Scratch memory.
        use: Sets this use apart from the model's others.
        hidden: The gradients of the gates' recurrent part, [T, D, B, G H].
        before: The states before each step, [T, D, B, H].
    """

    buffers: Buffers
    use: int
    hidden: Tensor | None = None
    before: Tensor | None = None

    def get(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Uninitialised memory of that name."""
        return self.buffers.get((self.use, name), shape, like)


def steps_of(tensor: Tensor, directions: int) -> list[tuple[Tensor, ...]]:
    """For each step, the pieces [B, features] of [T, B, D features], one for each direction."""
    parts = [part.unbind(0) for part in tensor.chunk(directions, dim=-1)]
    return list(zip(*(part[::-1] if d else part for d, part in enumerate(parts)), strict=True))


def _take(pieces: tuple[Tensor, ...], bias: Tensor, into: Tensor) -> Tensor:
    for piece, shift, place in zip(pieces, bias.unbind(0), into.unbind(0), strict=True):
        torch.add(piece, shift, out=place)
    return into


def _give(value: Tensor, pieces: tuple[Tensor, ...]) -> None:
    for piece, part in zip(pieces, value.unbind(0), strict=True):
        piece.copy_(part)


@dataclass(frozen=True)
class Forward:
    """What a cell computes with, and the states and memories that it fills.

    Attributes:
        inputs: The inputs' part of the gates, step by step.
        gates: [T, D, B, G H], to be filled.
        states: h, [T + 1, D, B, H], of which the first is given.
        memory: c, the same for cells that have one.
        weight: The recurrent matrices, transposed, [D, H, G H].
        bias: The inputs' biases, [D, 1, G H], with the recurrent ones where these act alike.
        recurrent_bias: The recurrent biases, [D, 1, G H], where they do not.
        work: Memory.
    """

    inputs: list[tuple[Tensor, ...]]
    gates: Tensor
    states: Tensor
    memory: Tensor
    weight: Tensor
    bias: Tensor
    recurrent_bias: Tensor | None
    work: Workspace

    def units(self, name: str) -> Tensor:
        """Memory for [T, D, B, H]."""
        return self.work.get(name, tuple(self.states[1:].shape), self.states)

    def slopes(self, name: str) -> Tensor:
        """Memory for [T, D, B, G, H]."""
        size = self.states.shape[-1]
        return self.work.get(name, (*self.gates.shape[:-1], self.gates.shape[-1] // size, size), self.gates)


@dataclass(frozen=True)
class Backward:
    """What a cell propagates back.

    Attributes:
        above: The gradients of the states from above, step by step.
        inputs: The gradients of the gates' inputs' part, step by step, to be filled.
        state: The gradient of the last state, [D, B, H]; in the end that of the first.
        memory: The same of the memory.
        weight: The recurrent matrices, [D, G H, H].
    """

    above: list[tuple[Tensor, ...]]
    inputs: list[tuple[Tensor, ...]]
    state: Tensor
    memory: Tensor
    weight: Tensor

    def steps(self) -> Iterator[int]:
        """The steps from last to first; at each, `state` gains what comes from above."""
        for t in reversed(range(len(self.above))):
            for piece, part in zip(self.above[t], self.state.unbind(0), strict=True):
                part += piece
            yield t


class Cell(ABC):
    """One kind of recurrent layer.

    Attributes:
        gates: G, the rows of its matrices per hidden unit.
        has_memory: Whether it carries a memory (c) beside its state (h).
        two_biases: Whether the recurrent bias acts otherwise than that of the inputs.
    """

    gates: int
    has_memory: bool = False
    two_biases: bool = False

    @abstractmethod
    def run(self, forward: Forward) -> None:
        """Fill the gates, the states and the memories."""

    @abstractmethod
    def back(self, forward: Forward, backward: Backward) -> Tensor:
        """Fill all gradients of `backward`; gives those of the gates' recurrent part."""


class LSTMCell(Cell):
    """Gates in the order input, forget, cell, output."""

    gates = 4
    has_memory = True

    def run(self, forward: Forward) -> None:
        """See `Cell`."""
        size, memory, states = forward.states.shape[-1], forward.memory, forward.states
        squashed = forward.units("squashed")
        for t, pieces in enumerate(forward.inputs):
            gate = _take(pieces, forward.bias, forward.gates[t]).baddbmm_(states[t], forward.weight)
            gate[..., : 2 * size].sigmoid_()
            gate[..., 2 * size : 3 * size].tanh_()
            gate[..., 3 * size :].sigmoid_()
            enter, forget, cell, leave = gate.chunk(4, dim=-1)
            torch.mul(forget, memory[t], out=memory[t + 1]).addcmul_(enter, cell)
            torch.tanh(memory[t + 1], out=squashed[t])
            torch.mul(leave, squashed[t], out=states[t + 1])

    def back(self, forward: Forward, backward: Backward) -> Tensor:
        """See `Cell`."""
        memory, squashed = forward.memory, forward.units("squashed")
        enter, forget, cell, leave = forward.gates.chunk(4, dim=-1)
        through, slopes = forward.units("through"), forward.slopes("slopes")
        torch.mul(leave, squashed, out=through).mul_(squashed).neg_().add_(leave)
        for at, (gate, factor) in enumerate(
            ((enter, cell), (forget, memory[:-1]), (None, enter), (leave, squashed))
        ):
            if gate is None:
                torch.mul(cell, cell, out=slopes[..., at, :]).neg_().add_(1).mul_(factor)
            else:
                torch.mul(gate, gate, out=slopes[..., at, :]).neg_().add_(gate).mul_(factor)
        gradients = slopes.view_as(forward.gates)
        for t in backward.steps():
            backward.memory.addcmul_(backward.state, through[t])
            slopes[t, :, :, :3] *= backward.memory.unsqueeze(-2)
            slopes[t, :, :, 3] *= backward.state
            _give(gradients[t], backward.inputs[t])
            backward.memory.mul_(forget[t])
            torch.bmm(gradients[t], backward.weight, out=backward.state)
        return gradients


class GRUCell(Cell):
    """Gates in the order reset, update, new."""

    gates = 3
    two_biases = True

    def run(self, forward: Forward) -> None:
        """See `Cell`."""
        size, states = forward.states.shape[-1], forward.states
        hidden = forward.slopes("hidden").view_as(forward.gates)
        assert forward.recurrent_bias is not None
        for t, pieces in enumerate(forward.inputs):
            gate = _take(pieces, forward.bias, forward.gates[t])
            torch.baddbmm(forward.recurrent_bias, states[t], forward.weight, out=hidden[t])
            reset, update = gate[..., : 2 * size].add_(hidden[t, ..., : 2 * size]).sigmoid_().chunk(2, dim=-1)
            new = gate[..., 2 * size :].addcmul_(reset, hidden[t, ..., 2 * size :]).tanh_()
            torch.lerp(new, states[t], update, out=states[t + 1])

    def back(self, forward: Forward, backward: Backward) -> Tensor:
        """See `Cell`."""
        size, states = forward.states.shape[-1], forward.states
        reset, update, new = forward.gates.chunk(3, dim=-1)
        hidden_new = forward.slopes("hidden").view_as(forward.gates)[..., 2 * size :]
        slopes, hidden = forward.slopes("slopes"), forward.slopes("recurrent")
        torch.mul(1 - update, 1 - new.square(), out=slopes[..., 2, :])
        torch.mul(states[:-1] - new, update * (1 - update), out=slopes[..., 1, :])
        torch.mul(slopes[..., 2, :] * hidden_new, reset * (1 - reset), out=slopes[..., 0, :])
        hidden.copy_(slopes)[..., 2, :] *= reset
        gradients, recurrent = slopes.view_as(forward.gates), hidden.view_as(forward.gates)
        for t in backward.steps():
            slopes[t] *= backward.state.unsqueeze(-2)
            hidden[t] *= backward.state.unsqueeze(-2)
            _give(gradients[t], backward.inputs[t])
            backward.state.mul_(update[t]).baddbmm_(recurrent[t], backward.weight)
        return recurrent


class ElmanCell(Cell):
    """h' = act(W x + U h + b) with tanh or ReLU."""

    gates = 1

    def __init__(self, *, relu: bool) -> None:
        self._relu = relu

    def run(self, forward: Forward) -> None:
        """See `Cell`."""
        for t, pieces in enumerate(forward.inputs):
            state = _take(pieces, forward.bias, forward.states[t + 1])
            state.baddbmm_(forward.states[t], forward.weight)
            state.relu_() if self._relu else state.tanh_()

    def back(self, forward: Forward, backward: Backward) -> Tensor:
        """See `Cell`."""
        after, slopes = forward.states[1:], forward.units("slopes")
        if self._relu:
            slopes.copy_(after > 0)
        else:
            torch.mul(after, after, out=slopes).neg_().add_(1)
        for t in backward.steps():
            _give(slopes[t].mul_(backward.state), backward.inputs[t])
            torch.bmm(slopes[t], backward.weight, out=backward.state)
        return slopes


class Recurrence(torch.autograd.Function):
    """A layer's recurrence as one differentiable operation of its gates' inputs and first states."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        state: Tensor,
        memory: Tensor,
        weight: Tensor,
        bias: Tensor,
        recurrent_bias: Tensor | None,
        cell: Cell,
        work: Workspace,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """All states [T, B, D H], the last state and the last memory [D, B, H].

        Args:
            ctx: Autograd's.
            inputs: [T, B, D G H], the inputs' part of the gates.
            state: [D, B, H], the first state.
            memory: [D, B, H], the first memory.
            weight: [D, G H, H].
            bias: [D, 1, G H], with the recurrent ones where these act alike.
            recurrent_bias: [D, 1, G H], where they do not.
            cell: The kind of layer.
            work: Memory; the backward pass leaves word in it.
        """
        length, (directions, records, size) = len(inputs), state.shape
        states = work.get("states", (length + 1, *state.shape), inputs)
        memories = work.get("memory", ((length + 1) if cell.has_memory else 1, *state.shape), inputs)
        states[0], memories[0] = state, memory
        forward = Forward(
            inputs=steps_of(inputs, directions),
            gates=work.get("gates", (length, directions, records, cell.gates * size), inputs),
            states=states,
            memory=memories,
            weight=weight.transpose(1, 2).contiguous(),
            bias=bias,
            recurrent_bias=recurrent_bias,
            work=work,
        )
        cell.run(forward)
        output = torch.empty_like(inputs[..., : directions * size])
        for value, pieces in zip(states[1:], steps_of(output, directions), strict=True):
            _give(value, pieces)
        ctx.cell, ctx.forward, ctx.weight, ctx.like = cell, forward, weight, inputs
        return output, states[-1].clone(), memories[-1].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the gates' inputs and the first states."""
        above, last_state, last_memory = gradients
        forward: Forward = ctx.forward
        directions = len(last_state)
        inputs = torch.empty_like(ctx.like)
        backward = Backward(
            above=steps_of(above, directions),
            inputs=steps_of(inputs, directions),
            state=last_state.clone(),
            memory=last_memory.clone(),
            weight=ctx.weight,
        )
        forward.work.hidden, forward.work.before = ctx.cell.back(forward, backward), forward.states[:-1]
        return inputs, backward.state, backward.memory, None, None, None, None, None

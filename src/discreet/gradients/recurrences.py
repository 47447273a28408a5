"""Recurrent layers over whole sequences, both directions at once, with explicit gradients of the gates.

All tensors are [T, D, B, ...]: time as the layer goes (the second direction already reversed), directions,
records. The loops over time do only what depends on the step before; everything else is done for all steps at
once.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass
class GateGradients:
    """What the backward pass leaves for the recurrent matrix: gates' gradients and the states before."""

    hidden: Tensor | None = None
    states: Tensor | None = None


class Cell(ABC):
    """One kind of recurrent layer.

    Attributes:
        gates: G, the rows of its matrices per hidden unit.
        has_memory: Whether it carries a memory (c) beside its state (h).
    """

    gates: int
    has_memory: bool = False

    @abstractmethod
    def run(
        self, gates: Tensor, states: Tensor, memory: Tensor, weight: Tensor, bias: Tensor
    ) -> list[Tensor]:
        """Fill `states` and `memory` [T + 1, D, B, H] from their first entries; what `back` needs.

        Args:
            gates: [T, D, B, G H]: the inputs' part of the gates on entry; overwritten.
            states: h, the first entry given.
            memory: c, the first entry given; empty for cells without one.
            weight: The recurrent matrices [D, H, G H], transposed.
            bias: Their biases [D, 1, G H].
        """

    @abstractmethod
    def back(
        self,
        saved: list[Tensor],
        states: Tensor,
        memory: Tensor,
        weight: Tensor,
        gradient: Tensor,
        last: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Gradients of the gates' inputs' part, of their recurrent part, of the first state and memory.

        Args:
            saved: What `run` gave.
            states: h.
            memory: c.
            weight: The recurrent matrices [D, G H, H].
            gradient: [T, D, B, H], of the states after each step.
            last: [D, B, H], of the memory after the last step.
        """


class LSTMCell(Cell):
    """Gates in the order input, forget, cell, output."""

    gates = 4
    has_memory = True

    def run(
        self, gates: Tensor, states: Tensor, memory: Tensor, weight: Tensor, bias: Tensor
    ) -> list[Tensor]:
        """See `Cell`."""
        size = states.shape[-1]
        gates += bias
        squashed = torch.empty_like(states[1:])
        for t in range(len(gates)):
            gate = torch.baddbmm(gates[t], states[t], weight, out=gates[t])
            gate[..., : 2 * size].sigmoid_()
            gate[..., 2 * size : 3 * size].tanh_()
            gate[..., 3 * size :].sigmoid_()
            enter, forget, cell, leave = gate.chunk(4, dim=-1)
            torch.mul(forget, memory[t], out=memory[t + 1]).addcmul_(enter, cell)
            torch.tanh(memory[t + 1], out=squashed[t])
            torch.mul(leave, squashed[t], out=states[t + 1])
        return [gates, squashed]

    def back(
        self,
        saved: list[Tensor],
        states: Tensor,
        memory: Tensor,
        weight: Tensor,
        gradient: Tensor,
        last: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """See `Cell`."""
        gates, squashed = saved
        size = states.shape[-1]
        enter, forget, cell, leave = (part.clone() for part in gates.chunk(4, dim=-1))
        through = leave * (1 - squashed.square())
        slopes = torch.empty(*gates.shape[:-1], 4, size, dtype=gates.dtype, device=gates.device)
        torch.mul(cell, enter * (1 - enter), out=slopes[..., 0, :])
        torch.mul(memory[:-1], forget * (1 - forget), out=slopes[..., 1, :])
        torch.mul(enter, 1 - cell.square(), out=slopes[..., 2, :])
        torch.mul(squashed, leave * (1 - leave), out=slopes[..., 3, :])
        gate_gradients = slopes.view_as(gates)
        into_memory, into_state = last.clone(), torch.empty_like(gradient[0])
        for t in range(len(gates) - 1, -1, -1):
            if t + 1 < len(gates):
                torch.baddbmm(gradient[t], gate_gradients[t + 1], weight, out=into_state)
                into_memory *= forget[t + 1]
            else:
                into_state.copy_(gradient[t])
            into_memory.addcmul_(into_state, through[t])
            slopes[t, :, :, :3] *= into_memory.unsqueeze(-2)
            slopes[t, :, :, 3] *= into_state
        first_state = torch.bmm(gate_gradients[0], weight)
        return gate_gradients, gate_gradients, first_state, into_memory * forget[0]


class GRUCell(Cell):
    """Gates in the order reset, update, new."""

    gates = 3

    def run(
        self, gates: Tensor, states: Tensor, memory: Tensor, weight: Tensor, bias: Tensor
    ) -> list[Tensor]:
        """See `Cell`."""
        size = states.shape[-1]
        hidden = torch.empty_like(gates)
        for t in range(len(gates)):
            torch.baddbmm(bias, states[t], weight, out=hidden[t])
            both = gates[t, ..., : 2 * size].add_(hidden[t, ..., : 2 * size]).sigmoid_()
            reset, update = both.chunk(2, dim=-1)
            new = gates[t, ..., 2 * size :].addcmul_(reset, hidden[t, ..., 2 * size :]).tanh_()
            torch.lerp(new, states[t], update, out=states[t + 1])
        return [gates, hidden[..., 2 * size :]]

    def back(
        self,
        saved: list[Tensor],
        states: Tensor,
        memory: Tensor,
        weight: Tensor,
        gradient: Tensor,
        last: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """See `Cell`."""
        gates, hidden_new = saved
        size = states.shape[-1]
        reset, update, new = gates.chunk(3, dim=-1)
        slopes = torch.empty(*gates.shape[:-1], 3, size, dtype=gates.dtype, device=gates.device)
        torch.mul(1 - update, 1 - new.square(), out=slopes[..., 2, :])
        torch.mul(states[:-1] - new, update * (1 - update), out=slopes[..., 1, :])
        torch.mul(slopes[..., 2, :] * hidden_new, reset * (1 - reset), out=slopes[..., 0, :])
        hidden = slopes.clone()
        hidden[..., 2, :] *= reset
        recurrent = hidden.view_as(gates)
        into_state = torch.zeros_like(gradient[0])
        for t in range(len(gates) - 1, -1, -1):
            into_state += gradient[t]
            slopes[t] *= into_state.unsqueeze(-2)
            hidden[t] *= into_state.unsqueeze(-2)
            into_state *= update[t]
            into_state.baddbmm_(recurrent[t], weight)
        return slopes.view_as(gates), recurrent, into_state, last


class ElmanCell(Cell):
    """h' = act(W x + U h + b) with tanh or ReLU."""

    gates = 1

    def __init__(self, *, relu: bool) -> None:
        self._relu = relu

    def run(
        self, gates: Tensor, states: Tensor, memory: Tensor, weight: Tensor, bias: Tensor
    ) -> list[Tensor]:
        """See `Cell`."""
        gates += bias
        for t in range(len(gates)):
            torch.baddbmm(gates[t], states[t], weight, out=states[t + 1])
            states[t + 1].relu_() if self._relu else states[t + 1].tanh_()
        return []

    def back(
        self,
        saved: list[Tensor],
        states: Tensor,
        memory: Tensor,
        weight: Tensor,
        gradient: Tensor,
        last: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """See `Cell`."""
        after = states[1:]
        slopes = (after > 0).to(after.dtype) if self._relu else 1 - after.square()
        into_state = torch.zeros_like(gradient[0])
        for t in range(len(slopes) - 1, -1, -1):
            slopes[t] *= into_state.add_(gradient[t])
            torch.bmm(slopes[t], weight, out=into_state)
        return slopes, slopes, into_state, last


class Recurrence(torch.autograd.Function):
    """A layer's recurrence as one differentiable operation of its gates' inputs and first states."""

    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,
        state: Tensor,
        memory: Tensor,
        weight: Tensor,
        bias: Tensor,
        cell: Cell,
        left: GateGradients,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """All states [T, D, B, H], the last state and the last memory [D, B, H].

        Args:
            ctx: Autograd's.
            gates: [T, D, B, G H], the inputs' part.
            state: [D, B, H], the first state.
            memory: [D, B, H], the first memory.
            weight: [D, G H, H].
            bias: [D, 1, G H].
            cell: The kind of layer.
            left: Filled by the backward pass.
        """
        steps = len(gates) + 1
        states = gates.new_empty(steps, *state.shape)
        memories = gates.new_empty(steps if cell.has_memory else 0, *state.shape)
        states[0] = state
        if cell.has_memory:
            memories[0] = memory
        saved = cell.run(gates.clone(), states, memories, weight.transpose(1, 2).contiguous(), bias)
        ctx.cell, ctx.left, ctx.kept = cell, left, (saved, states, memories, weight)
        return states[1:].clone(), states[-1].clone(), (memories[-1] if cell.has_memory else memory).clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the gates' inputs and the first states."""
        through, last_state, last_memory = gradients
        saved, states, memories, weight = ctx.kept
        through = through.clone()
        through[-1] += last_state
        inputs, hidden, state, memory = ctx.cell.back(saved, states, memories, weight, through, last_memory)
        ctx.left.hidden, ctx.left.states = hidden, states[:-1]
        return inputs, state, memory, None, None, None, None

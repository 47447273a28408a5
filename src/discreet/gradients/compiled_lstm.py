"""An LSTM's recurrence by the compiled kernels, as one differentiable operation."""

from typing import Any

import torch
from torch import Tensor

from discreet.gradients.native import Kernels
from discreet.gradients.recurrences import Workspace


class CompiledLSTM(torch.autograd.Function):
    """What `recurrences.Recurrence` computes for an LSTM, with the records first."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        state: Tensor,
        memory: Tensor,
        weight: Tensor,
        bias: Tensor,
        kernels: Kernels,
        work: Workspace,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """All states [B, T, D H], the last state and the last memory [D, B, H].

        Args:
            ctx: Autograd's.
            inputs: [B, T, D 4 H], the inputs' part of the gates.
            state: [D, B, H], the first state.
            memory: [D, B, H], the first memory.
            weight: [D, 4 H, H].
            bias: [D, 4 H], both biases together.
            kernels: The kernels.
            work: Memory; the backward pass leaves word in it.
        """
        found = kernels.lstm_forward(inputs, weight, bias, state, memory, work.get)
        ctx.found, ctx.weight, ctx.kernels, ctx.work = found, weight, kernels, work
        return found.output, found.state, found.memory

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the gates' inputs and the first states."""
        above, state, memory = gradients
        work: Workspace = ctx.work
        directions, records, units = state.shape
        shape = (records, above.shape[1], directions * 4 * units)
        gates = work.get("gradients", shape, above)
        found = ctx.kernels.lstm_backward(ctx.found, above, state, memory, ctx.weight, gates)
        work.hidden = gates.view(records, -1, directions, 4 * units).permute(1, 2, 0, 3)
        work.before = ctx.found.before.permute(2, 0, 1, 3)
        return found.gates, found.state, found.memory, None, None, None, None

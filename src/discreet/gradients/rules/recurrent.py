"""LSTM, GRU and plain recurrent networks: several layers, both directions, dropout between layers."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from discreet.gradients.axes import RecordAxis
from discreet.gradients.contributions import Contribution, Rows
from discreet.gradients.recurrences import Cell, ElmanCell, GateGradients, GRUCell, LSTMCell, Recurrence
from discreet.gradients.rules.linear import sequence
from discreet.gradients.sequences import outer_products
from discreet.gradients.slots import Slot, UnsupportedError
from discreet.gradients.tape import Rule, Tape


def recurrent(
    cell: Cell,
    tape: Tape,
    input: Tensor,
    hx: Any,
    params: Any,
    has_biases: bool,
    num_layers: Any,
    dropout: float = 0.0,
    train: bool = False,
    bidirectional: Any = False,
    batch_first: bool | None = None,
) -> tuple[Tensor, ...]:
    """torch.lstm, torch.gru, torch.rnn_tanh and torch.rnn_relu on sequences of equal length."""
    directions = 2 if bidirectional else 1
    if batch_first is None or not isinstance(params, Sequence) or input.dim() != 3:
        raise UnsupportedError("a recurrent layer on packed sequences or without a record dimension")
    each = 4 if has_biases else 2
    if len(params) != num_layers * directions * each:
        raise UnsupportedError("an LSTM with projections")
    first = tuple(hx) if cell.has_memory else (hx, hx)
    if any(tape.slots.covers(tensor) for tensor in first):
        raise UnsupportedError("a recurrent layer whose first state is a trainable parameter")
    records = 0 if batch_first else 1
    states, memories = [], []
    for number in range(num_layers):
        if number and train and dropout:
            input = F.dropout(input, dropout)
        start = number * directions
        layer = [params[(start + d) * each : (start + d + 1) * each] for d in range(directions)]
        part = slice(start, start + directions)
        input, state, memory = _layer(cell, tape, input, first[0][part], first[1][part], layer, records)
        states.append(state)
        memories.append(memory)
    if cell.has_memory:
        return input, torch.cat(states), torch.cat(memories)
    return input, torch.cat(states)


def _layer(
    cell: Cell,
    tape: Tape,
    input: Tensor,
    state: Tensor,
    memory: Tensor,
    layer: Sequence[Sequence[Tensor]],
    records: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """One layer: output like `input`, last state and memory [D, B, H].

    The layer's parameters are, for each direction, input matrix, recurrent matrix and, if there are any, the
    two biases.
    """
    plain = [[tape.plain(parameter) for parameter in direction] for direction in layer]
    slots = [[tape.slot(parameter) for parameter in direction] for direction in layer]
    directions, size = len(layer), state.shape[-1]
    biases = [
        torch.cat([direction[at] for direction in plain]) if len(plain[0]) == 4 else None for at in (2, 3)
    ]
    gates = F.linear(input, torch.cat([direction[0] for direction in plain]), biases[0])
    left, inputs, use = GateGradients(), tape.remember(input), tape.uses

    def receive(gradient: Tensor, axis: RecordAxis) -> list[tuple[Slot, Contribution]]:
        if axis.dim != records:
            raise UnsupportedError("a recurrent layer runs along the records")
        assert left.hidden is not None
        assert left.states is not None
        right, towards = sequence(inputs(), axis), sequence(gradient, axis).chunk(directions, dim=-1)
        found: list[tuple[Slot, Contribution]] = []
        forms: tuple[Callable[[], Contribution], ...]
        ahead = RecordAxis(1, axis.blocks, axis.major)
        for d in range(directions):
            hidden, before = (sequence(tensor[:, d], ahead) for tensor in (left.hidden, left.states))
            forms = (
                partial(outer_products, towards[d], right, tape.buffers, tape.choices, f"{use} {d} input"),
                partial(outer_products, hidden, before, tape.buffers, tape.choices, f"{use} {d}"),
                partial(_summed, towards[d]),
                partial(_summed, hidden),
            )
            found += [(slot, form()) for slot, form in zip(slots[d], forms, strict=False) if slot is not None]
        return found

    gates = tape.watch("recurrent", gates, [slot for direction in slots for slot in direction], receive)
    gates = _time_first(gates, records, directions)
    weight = torch.stack([direction[1] for direction in plain])
    bias = gates.new_zeros(directions, 1, gates.shape[-1])
    if biases[1] is not None:
        bias = biases[1].view(directions, 1, -1)
    output, state, memory = Recurrence.apply(gates, state, memory, weight, bias, cell, left)  # type: ignore[no-untyped-call]
    return _records_back(output, records, directions * size), state, memory


def _summed(gradients: Tensor) -> Contribution:
    return Rows(gradients.sum(1))


def _time_first(tensor: Tensor, records: int, directions: int) -> Tensor:
    """[B, T, D G] or [T, B, D G] as [T, D, B, G], the second direction reversed in time."""
    tensor = tensor.transpose(0, 1) if records == 0 else tensor
    return torch.stack(
        [part.flip(0) if d else part for d, part in enumerate(tensor.chunk(directions, dim=-1))], 1
    )


def _records_back(states: Tensor, records: int, features: int) -> Tensor:
    parts = [states[:, d].flip(0) if d else states[:, d] for d in range(states.shape[1])]
    output = torch.cat(parts, dim=-1)
    return output.transpose(0, 1) if records == 0 else output


RULES: dict[Any, Rule] = {
    getattr(torch, name): partial(recurrent, cell)
    for name, cell in (
        ("lstm", LSTMCell()),
        ("gru", GRUCell()),
        ("rnn_tanh", ElmanCell(relu=False)),
        ("rnn_relu", ElmanCell(relu=True)),
    )
}

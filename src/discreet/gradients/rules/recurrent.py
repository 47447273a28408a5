"""LSTM, GRU and plain recurrent networks: several layers, both directions, dropout between layers."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from discreet.gradients.axes import RecordAxis
from discreet.gradients.choosing import COMPILED
from discreet.gradients.compiled_lstm import CompiledLSTM
from discreet.gradients.contributions import Contribution, Rows
from discreet.gradients.recurrences import Cell, ElmanCell, GRUCell, LSTMCell, Recurrence, Workspace
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
    if torch.is_autocast_enabled(input.device.type):
        raise UnsupportedError("a recurrent layer under autocast")
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
    directions = len(layer)
    matrix = torch.cat([direction[0] for direction in plain])
    # Biases are added where the gates are copied anyway: here it would cost a pass over all of them.
    gates = F.linear(input, matrix)
    inputs, use = tape.remember(input), tape.uses
    work = Workspace(tape.buffers, use)

    def receive(gradient: Tensor, axis: RecordAxis) -> list[tuple[Slot, Contribution]]:
        if axis.dim != records:
            raise UnsupportedError("a recurrent layer runs along the records")
        assert work.hidden is not None
        assert work.before is not None
        right, towards = sequence(inputs(), axis), sequence(gradient, axis).chunk(directions, dim=-1)
        found: list[tuple[Slot, Contribution]] = []
        forms: tuple[Callable[[], Contribution], ...]
        ahead = RecordAxis(1, axis.blocks, axis.major)
        for d in range(directions):
            hidden, before = (sequence(tensor[:, d], ahead) for tensor in (work.hidden, work.before))
            summed = cache(partial(_summed, towards[d]))
            forms = (
                partial(outer_products, towards[d], right, tape.buffers, tape.choices, f"{use} {d} input"),
                partial(outer_products, hidden, before, tape.buffers, tape.choices, f"{use} {d}"),
                summed,
                partial(_summed, hidden) if cell.two_biases else summed,
            )
            found += [(slot, form()) for slot, form in zip(slots[d], forms, strict=False) if slot is not None]
        return found

    gates = tape.watch("recurrent", gates, [slot for direction in slots for slot in direction], receive)
    weight = torch.stack([direction[1] for direction in plain])
    bias, recurrent_bias = _biases(cell, plain)
    kernels = tape.choices.kernels_for(gates) if isinstance(cell, LSTMCell) else None
    # The kernels have the records first, the others the steps.
    turned = records == (0 if kernels is None else 1)
    gates = gates.transpose(0, 1) if turned else gates
    if kernels is not None:
        tape.choices.chosen["lstm"] = COMPILED
        applied = CompiledLSTM.apply(gates, state, memory, weight, bias.squeeze(1), kernels, work)  # type: ignore[no-untyped-call]
    else:
        applied = Recurrence.apply(gates, state, memory, weight, bias, recurrent_bias, cell, work)  # type: ignore[no-untyped-call]
    output, state, memory = applied
    return output.transpose(0, 1) if turned else output, state, memory


def _biases(cell: Cell, plain: Sequence[Sequence[Tensor]]) -> tuple[Tensor, Tensor | None]:
    """The inputs' biases [D, 1, G H], with the recurrent ones if these act alike, else these beside them."""
    if len(plain[0]) == 2:
        absent = plain[0][0].new_zeros(len(plain), 1, len(plain[0][0]))
        return absent, absent if cell.two_biases else None
    own, recurrent = (torch.stack([direction[at] for direction in plain]).unsqueeze(1) for at in (2, 3))
    return (own, recurrent) if cell.two_biases else (own + recurrent, None)


def _summed(gradients: Tensor) -> Contribution:
    return Rows(gradients.sum(1))


RULES: dict[Any, Rule] = {
    getattr(torch, name): partial(recurrent, cell)
    for name, cell in (
        ("lstm", LSTMCell()),
        ("gru", GRUCell()),
        ("rnn_tanh", ElmanCell(relu=False)),
        ("rnn_relu", ElmanCell(relu=True)),
    )
}

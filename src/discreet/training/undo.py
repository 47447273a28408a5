"""Taking a proposal back: the weights and all of the optimizer's memory, to the last bit."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Undo:
    """A copy of weights and optimizer memory as they were at the last `mark`, in buffers that are made once.

    A rejected candidate must leave no trace: momentum that remembers it would leak an update that was never paid for
    into all later ones.
    """

    def __init__(self, parameters: Tensor, optimizer: torch.optim.Optimizer) -> None:
        self._parameters, self._optimizer = parameters, optimizer
        self._kept = torch.empty_like(parameters)
        self._memory: dict[Tensor, dict[str, Any]] = {}
        self._groups: list[dict[str, Any]] = []

    def mark(self) -> None:
        """Remember the present."""
        self._kept.copy_(self._parameters)
        state = self._optimizer.state
        for leaf in [leaf for leaf in self._memory if leaf not in state]:
            del self._memory[leaf]
        for leaf, entries in state.items():
            self._memory[leaf] = {
                name: _copied(value, self._memory.get(leaf, {}).get(name)) for name, value in entries.items()
            }
        self._groups = [
            {name: value for name, value in group.items() if name != "params"}
            for group in self._optimizer.param_groups
        ]

    def back(self) -> None:
        """Put everything back as it was at the mark."""
        self._parameters.copy_(self._kept)
        state = self._optimizer.state
        for leaf in [leaf for leaf in state if leaf not in self._memory]:
            del state[leaf]
        for leaf, entries in self._memory.items():
            state[leaf] = {name: _copied(value, state[leaf].get(name)) for name, value in entries.items()}
        for group, kept in zip(self._optimizer.param_groups, self._groups, strict=True):
            group.update(kept)


def _copied(value: Any, into: Any) -> Any:
    """A copy of an entry of an optimizer's memory, in the memory of an earlier copy where that fits."""
    if not isinstance(value, Tensor):
        return value
    if isinstance(into, Tensor) and into.shape == value.shape and into.dtype == value.dtype:
        return into.copy_(value)
    return value.clone()

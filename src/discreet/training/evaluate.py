"""Accuracy on records that are public, or declared not to be private."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from discreet.gradients.batches import call_model


class PublicData(Protocol):
    """Records in batches, in order."""

    def batches(self, size: int) -> Iterator[tuple[Any, Tensor]]:
        """All records, `size` at a time."""
        ...


@torch.no_grad()
def accuracy(model: nn.Module, data: PublicData, *, batch_size: int = 1024) -> float:
    """The share of records whose most probable class is the right one.

    Guarantee: none for the records in `data`: the figure is exact and not noised. Only public records, or records
    that somebody declared not to be private, may be given.
    """
    device = next(model.parameters()).device
    training = model.training
    model.eval()
    try:
        right = total = 0
        for inputs, targets in data.batches(batch_size):
            right += hits(model, inputs.to(device), targets.to(device))
            total += len(targets)
    finally:
        model.train(training)
    return right / total


@torch.no_grad()
def hits(model: nn.Module, inputs: Any, targets: Tensor) -> int:
    """For how many of these records the most probable class is the right one; exact, not noised."""
    return int((call_model(model, inputs).argmax(dim=1) == targets).sum())

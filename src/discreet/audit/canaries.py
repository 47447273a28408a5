"""Records made to be found: each moves the clipped sum by the full sensitivity, in a direction of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from discreet.data import Records

if TYPE_CHECKING:
    from discreet.data import Description

Loss = Callable[[Tensor, Tensor], Tensor]

PULL = 1e3
"""The length of a canary's gradient: far above any clip norm or scaling bound, so that it is clipped to the full."""


@dataclass(frozen=True, kw_only=True)
class Disguise:
    """Where canaries keep out of the way of the network: a column of the output, and a class beyond the last.

    Attributes:
        classes: how many classes the network knows; a canary's target is the next number.
    """

    classes: int

    def loss(self, of_records: Loss) -> Loss:
        """A loss that is `of_records` for records, and for a canary minus its own column of the output."""

        def loss(outputs: Tensor, targets: Tensor) -> Tensor:
            canary = targets == self.classes
            known = of_records(outputs[:, : self.classes], targets.clamp(max=self.classes - 1))
            return torch.where(canary, -outputs[:, self.classes], known)

        return loss


class WithCanaries(nn.Module):
    """A network, and beside it one weight for each canary.

    The gradient of canary i is -PULL on weight i and zero everywhere else; that of a record is zero on all of these
    weights. So canaries are orthogonal to each other and to the records, and a release shows each of them by itself.

    Args:
        network: the network that records go through.
        canaries: how many there are; token 0 stands for a record, token i + 1 for canary i.
    """

    def __init__(self, network: nn.Module, canaries: int) -> None:
        super().__init__()
        self.network = network
        self.nest = nn.Embedding(canaries + 1, 1)
        nn.init.zeros_(self.nest.weight)

    def forward(self, inputs: Tensor, tokens: Tensor) -> Tensor:
        """The network's outputs, and one column more for the canaries."""
        is_record = (tokens == 0).to(inputs.dtype)[:, None]
        own = PULL * self.nest(tokens) * (1.0 - is_record)
        return torch.cat([self.network(inputs) * is_record, own], dim=1)


class CanaryRecords:
    """Records, and after them canaries, each of which is in or out.

    Numbers are given to all canaries, so that the number of records is a public constant. Those that are out are left
    out of every batch: the batch is a Poisson sample of the records and of the canaries that are in.

    Args:
        records: the ordinary records.
        present: which canaries are in, [canaries] of truth values.
    """

    def __init__(self, records: Records, present: Tensor) -> None:
        self._records, self._present = records, present
        self._blank = torch.zeros_like(records.batch(torch.tensor([0]))[0][0])

    def __len__(self) -> int:
        return len(self._records) + len(self._present)

    @property
    def description(self) -> Description:
        """What the records are; the canaries are no secret."""
        form = self._records.description
        return replace(form, name=f"{form.name} with {len(self._present)} canaries")

    @property
    def targets(self) -> Tensor:
        """The targets of the records, and a class of its own for canaries."""
        own = torch.full((len(self._present),), self._records.description.classes)
        return torch.cat([self._records.targets, own])

    def require_trainable(self) -> None:
        """Canaries are enough to train on."""

    def batch(self, indices: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
        """Inputs with tokens, and targets, of those at `indices` that are in."""
        first = len(self._records)
        usual, numbers = indices[indices < first], indices[indices >= first] - first
        numbers = numbers[self._present[numbers]]
        inputs, targets = self._records.batch(usual)
        blank = self._blank.expand(len(numbers), *self._blank.shape)
        tokens = torch.cat([torch.zeros(len(usual), dtype=torch.int64), numbers + 1])
        own = torch.full((len(numbers),), self._records.description.classes)
        return (torch.cat([inputs, blank]), tokens), torch.cat([targets, own])


def made_up_records(count: int, seed: int) -> Records:
    """Ordinary company for canaries: three clouds of points that a small network tells apart."""
    generator = torch.Generator().manual_seed(seed)
    targets = torch.arange(count) % 3
    inputs = 2.5 * torch.eye(3, 4)[targets] + torch.randn(count, 4, generator=generator)
    return Records.from_arrays(inputs, targets, classes=3, name="three clouds")


def made_up_network() -> nn.Module:
    """A network for them."""
    return nn.Linear(4, 3)

"""What the records of a batch contribute to the gradient of one parameter."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from discreet.gradients.norms import as_matrix, squared_norms
from discreet.gradients.slots import Slot


class Contribution(ABC):
    """The per-record gradients of one slot, in whatever form is cheapest; exact in every form."""

    @abstractmethod
    def squared(self) -> Tensor:
        """Each record's squared norm, [B] in float64."""

    @abstractmethod
    def rows(self) -> Tensor:
        """Each record's gradient, [B, *shape]."""

    @abstractmethod
    def add_weighted(self, weights: Tensor, out: Tensor) -> None:
        """Add the sum of the records' gradients times their weights [B] to `out`, of the slot's shape."""


class Rows(Contribution):
    """The per-record gradients as they are.

    Args:
        rows: [B, *shape], or with a permutation [B, *another order of shape].
        squared: Their squared norms, if they are known.
        order: The permutation that brings one record's gradient into the slot's order of dimensions.
    """

    def __init__(
        self, rows: Tensor, squared: Tensor | None = None, order: tuple[int, ...] | None = None
    ) -> None:
        self._rows, self._squared = rows, squared
        self._order = order or tuple(range(rows.dim() - 1))

    def squared(self) -> Tensor:
        """Each record's squared norm, [B] in float64."""
        if self._squared is None:
            self._squared = squared_norms(self._rows)
        return self._squared

    def rows(self) -> Tensor:
        """Each record's gradient, [B, *shape]."""
        return self._rows.permute(0, *(dim + 1 for dim in self._order))

    def add_weighted(self, weights: Tensor, out: Tensor) -> None:
        """Add the weighted sum to `out`."""
        out += torch.mv(as_matrix(self._rows).t(), weights).view(self._rows.shape[1:]).permute(self._order)


class Together(Contribution):
    """Several contributions to one parameter, whose per-record gradients add up before they are measured."""

    def __init__(self, parts: Sequence[tuple[Slot, Contribution]], size: int) -> None:
        self._parts, self._size = parts, size

    def squared(self) -> Tensor:
        """Each record's squared norm, [B] in float64."""
        return squared_norms(self.rows())

    def rows(self) -> Tensor:
        """Each record's gradient with respect to the whole parameter, [B, size]."""
        total: Tensor | None = None
        for slot, part in self._parts:
            rows = part.rows()
            if total is None:
                total = rows.new_zeros(rows.shape[0], self._size)
            slot.within_rows(total).add_(rows)
        assert total is not None
        return total

    def add_weighted(self, weights: Tensor, out: Tensor) -> None:
        """Add the weighted sum to `out`, the whole parameter as a vector."""
        for slot, part in self._parts:
            part.add_weighted(weights, slot.within(out, 0))

"""Where in a layer's tensors the records are."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from discreet.gradients.slots import UnsupportedError


@dataclass(frozen=True)
class RecordAxis:
    """The dimension along which a tensor holds the records.

    Attributes:
        dim: The dimension; its length is the number of records times `blocks`.
        blocks: Entries of that dimension per record.
        major: Whether a record's entries lie next to each other (as after flattening [B, T]) or B apart (as
            after flattening [T, B]).
    """

    dim: int
    blocks: int = 1
    major: bool = True

    def front(self, tensor: Tensor) -> Tensor:
        """The tensor as [B, blocks, *other dimensions in their order]."""
        tensor = tensor.movedim(self.dim, 0)
        if self.major:
            return tensor.reshape(-1, self.blocks, *tensor.shape[1:])
        return tensor.reshape(self.blocks, -1, *tensor.shape[1:]).transpose(0, 1)

    def entries(self, record: int, records: int) -> list[int]:
        """The entries along `dim` of one of `records` records."""
        if self.major:
            return list(range(record * self.blocks, (record + 1) * self.blocks))
        return list(range(record, record + self.blocks * records, records))


def find_axis(
    what: str, two: torch.Size, three: torch.Size, gradients: Sequence[Tensor | None]
) -> RecordAxis:
    """The record axis of an output, from its shapes for 2 and for 3 records and the gradients for 3.

    The r-th gradient is that of record r's loss alone. It must vanish outside the entries of record r, which
    both tells how records are ordered and shows that the model does not mix them.
    """
    grown = [dim for dim, (a, b) in enumerate(zip(two, three, strict=False)) if a != b]
    if len(two) != len(three) or len(grown) != 1:
        raise UnsupportedError(f"{what} gives an output without a dimension for the records")
    (dim,) = grown
    blocks = three[dim] - two[dim]
    if blocks < 1 or two[dim] != 2 * blocks:
        raise UnsupportedError(
            f"{what} gives an output whose length is not a multiple of the number of records"
        )
    candidates = [RecordAxis(dim, blocks, major) for major in ((True,) if blocks == 1 else (True, False))]
    fitting = [axis for axis in candidates if all(_fits(axis, r, g) for r, g in enumerate(gradients))]
    if len(fitting) != 1:
        raise UnsupportedError(f"{what} gives an output in which records cannot be told apart")
    return fitting[0]


def _fits(axis: RecordAxis, record: int, gradient: Tensor | None) -> bool:
    if gradient is None:
        return True
    others = gradient.movedim(axis.dim, 0).flatten(1).ne(0).any(1)
    others[axis.entries(record, 3)] = False
    return not bool(others.any())

"""Squared norms that do not lose anything, and norms that are never too small.

A norm that comes out too small lets a record contribute more than the clip norm, which breaks the guarantee.
Two things keep that from happening:

- Squares are added in the gradients' type over blocks of at most 128 entries only, and the blocks in float64.
  Whatever the order in which a block is added, its norm is then off by at most 33 units in the last place.
  Squares that overflow make the norm infinite, so that such a gradient counts as not finite.
- `round_up` adds a relative margin of 40 units, which covers that and what happens after the norm is known:
  the weight's rounding to the gradients' type and the product with it. It also adds an absolute 1e-12, which
  is above anything that underflow can hide, so that weights stay finite.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

_BLOCK = 128
_LEAST = 32
_ULPS = 40
_FLOOR = 1e-12


def as_matrix(gradients: Tensor) -> Tensor:
    """Gradients [B, *shape] as [B, entries]."""
    return gradients.flatten(1) if gradients.dim() > 1 else gradients.unsqueeze(1)


def squared_norms(gradients: Tensor) -> Tensor:
    """The squared L2 norm of each record's part (dimension 0), in float64."""
    return sum_of_blocks(block_norms(gradients))


def block_norms(gradients: Tensor, out: Tensor | None = None) -> Tensor:
    """The norms of the blocks of each record's part, [B, `blocks_of` entries]."""
    flat = as_matrix(gradients)
    records, entries = flat.shape
    count = blocks_of(entries)
    if entries % count:
        flat = F.pad(flat, (0, count * _BLOCK - entries))
    norms: Tensor = torch.linalg.vector_norm(flat.reshape(records, count, -1), dim=2, out=out)
    return norms


def sum_of_blocks(norms: Tensor) -> Tensor:
    """The squared norms [B], in float64, of what has these blocks' norms."""
    return norms.double().square_().sum(1)


def blocks_of(entries: int) -> int:
    """Into how many blocks so many entries are cut: into equal ones if their length allows it."""
    if entries <= _BLOCK:
        return 1
    fitting = [length for length in range(_BLOCK, _LEAST, -1) if entries % length == 0]
    return entries // fitting[0] if fitting else -(-entries // _BLOCK)


def round_up(squared: Tensor, dtype: torch.dtype) -> Tensor:
    """Upper bounds, in float64, on the norms of gradients of type `dtype`; NaN and infinity stay."""
    return squared.clamp(min=0).sqrt() * (1 + _ULPS * torch.finfo(dtype).eps) + _FLOOR

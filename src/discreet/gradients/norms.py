"""Squared norms that do not lose anything, and norms that are never too small.

A norm that comes out too small lets a record contribute more than the clip norm, which breaks the guarantee.
Two things keep that from happening:

- Squares are added in the gradients' type over blocks of 128 entries only, and the blocks in float64.
  Whatever the order in which a block is added, its norm is then off by at most 33 units in the last place; a
  block whose squares overflow is computed again in float64.
- `round_up` adds a relative margin of 40 units, which covers that and what happens after the norm is known:
  the weight's rounding to the gradients' type and the product with it. It also adds an absolute 1e-12, which
  is above anything that underflow can hide, so that weights stay finite.
"""

import torch
from torch import Tensor

_BLOCK = 128
_ULPS = 40
_FLOOR = 1e-12


def as_matrix(gradients: Tensor) -> Tensor:
    """Gradients [B, *shape] as [B, entries]."""
    return gradients.flatten(1) if gradients.dim() > 1 else gradients.unsqueeze(1)


def squared_norms(gradients: Tensor) -> Tensor:
    """The squared L2 norm of each record's part (dimension 0), in float64."""
    flat = as_matrix(gradients)
    records, entries = flat.shape
    whole = entries - entries % _BLOCK
    squared = torch.zeros(records, dtype=torch.float64, device=flat.device)
    for part in (flat[:, :whole].reshape(records, -1, _BLOCK), flat[:, whole:].unsqueeze(1)):
        if part.numel():
            squared += _block_norms(part).square_().sum(1)
    return squared


def _block_norms(blocks: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(blocks, dim=2).double()
    overflown = norms.isinf()
    if bool(overflown.any()):
        norms[overflown] = torch.linalg.vector_norm(blocks[overflown], dim=1, dtype=torch.float64)
    return norms


def round_up(squared: Tensor, dtype: torch.dtype) -> Tensor:
    """Upper bounds, in float64, on the norms of gradients of type `dtype`; NaN and infinity stay."""
    return squared.clamp(min=0).sqrt() * (1 + _ULPS * torch.finfo(dtype).eps) + _FLOOR

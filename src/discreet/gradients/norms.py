"""Squared norms that do not lose anything, and norms that are never too small.

A norm that comes out too small lets a record contribute more than the clip norm, which breaks the guarantee.
Two things keep that from happening:

- Squares are accumulated in float64. There the relative error of a sum of n squares is at most n 2^-53, which
  is under 1e-6 for any model that fits in memory, and neither overflow nor underflow of a float32 square can
  occur.
- `round_up` adds a relative margin of 8 units in the last place of the gradients' type. It covers what
  happens after the norm is known: the weight's rounding to that type, the product with it, and the rounding
  of each entry of the gradient itself between the computation of the norm and that of the sum (each at most
  one unit). It also adds an absolute 1e-15, which is above anything that underflow can hide, so weights stay
  finite.
"""

import torch
from torch import Tensor

_ULPS = 8
_FLOOR = 1e-15


def squared_norms(gradients: Tensor) -> Tensor:
    """The squared L2 norm of each record's part (dimension 0), in float64."""
    flat = gradients.flatten(1)
    if flat.shape[1] == 0:
        return torch.zeros(flat.shape[0], dtype=torch.float64, device=flat.device)
    norms: Tensor = torch.linalg.vector_norm(flat, dim=1, dtype=torch.float64)
    return norms.square_()


def round_up(squared: Tensor, dtype: torch.dtype) -> Tensor:
    """Upper bounds, in float64, on the norms of gradients of type `dtype`; NaN and infinity stay."""
    return squared.clamp(min=0).sqrt() * (1 + _ULPS * torch.finfo(dtype).eps) + _FLOOR

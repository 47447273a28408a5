"""Embeddings: a record's gradient has as many rows as the record has different tokens."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from discreet.gradients.axes import RecordAxis
from discreet.gradients.contributions import Contribution
from discreet.gradients.norms import squared_norms
from discreet.gradients.slots import Slot, UnsupportedError
from discreet.gradients.tape import Rule, Tape


def embedding(
    tape: Tape,
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """F.embedding."""
    if max_norm is not None or scale_grad_by_freq:
        raise UnsupportedError("an embedding with max_norm or scale_grad_by_freq mixes records")
    slot = tape.slot(weight)
    output, indices = F.embedding(input, tape.plain(weight), padding_idx), tape.remember(input)
    padding = None if padding_idx is None else padding_idx % weight.shape[0]

    def receive(gradient: Tensor, axis: RecordAxis) -> list[tuple[Slot, Contribution]]:
        assert slot is not None
        if axis.dim == gradient.dim() - 1:
            raise UnsupportedError("an embedding has the records along its features")
        front = axis.front(gradient)
        tokens = axis.front(indices()).reshape(front.shape[0], -1)
        gradients = front.reshape(*tokens.shape, -1)
        return [(slot, TokenRows(tokens, gradients, weight.shape[0], padding))]

    return tape.watch("embedding", output, (slot,), receive)


def embedding_bag(
    tape: Tape,
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """F.embedding_bag of bags of equal length, [B, T]."""
    if input.dim() != 2 or offsets is not None or mode not in ("sum", "mean"):
        raise UnsupportedError("an embedding bag with offsets or of maxima")
    if max_norm is not None or scale_grad_by_freq:
        raise UnsupportedError("an embedding bag with max_norm or scale_grad_by_freq mixes records")
    tokens = embedding(tape, input, weight, padding_idx)
    counted = torch.ones_like(input, dtype=weight.dtype)
    if padding_idx is not None:
        counted = counted * (input != padding_idx % weight.shape[0])
    factors = counted if per_sample_weights is None else counted * per_sample_weights
    total = torch.einsum("btd,bt->bd", tokens, factors)
    return total if mode == "sum" else total / counted.sum(1, keepdim=True).clamp(min=1)


class TokenRows(Contribution):
    """Gradients [B, T, d] of the rows that tokens [B, T] selected from a table of `size` rows.

    Equal tokens of one record are added up, which leaves one row for each pair of record and token; no tensor
    of the size of the table is made for a record.
    """

    def __init__(self, tokens: Tensor, gradients: Tensor, size: int, padding: int | None) -> None:
        self._records, self._size = tokens.shape[0], size
        owners = torch.arange(self._records, device=tokens.device).unsqueeze(1)
        keys = (tokens + owners * size).flatten()
        flat = gradients.flatten(0, 1)
        if padding is not None:
            used = tokens.flatten() != padding
            keys, flat = keys[used], flat[used]
        pairs, places = torch.unique(keys, return_inverse=True)
        self._rows = flat.new_zeros(len(pairs), flat.shape[1]).index_add_(0, places, flat)
        self._owners = pairs.div(size, rounding_mode="floor")
        self._tokens = pairs - self._owners * size

    def squared(self) -> Tensor:
        """Each record's squared norm, [B] in float64."""
        each = squared_norms(self._rows)
        return each.new_zeros(self._records).index_add_(0, self._owners, each)

    def rows(self) -> Tensor:
        """Each record's gradient, [B, size, d]."""
        dense = self._rows.new_zeros(self._records, self._size, self._rows.shape[1])
        dense[self._owners, self._tokens] = self._rows
        return dense

    def add_weighted(self, weights: Tensor, out: Tensor) -> None:
        """Add the weighted sum to `out`."""
        out.index_add_(0, self._tokens, self._rows * weights[self._owners].unsqueeze(1))


RULES: dict[Any, Rule] = {F.embedding: embedding, F.embedding_bag: embedding_bag}

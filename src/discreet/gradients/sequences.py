"""Gradients of matrices that act on sequences: the sum over positions of outer products, record by record."""

from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from discreet.gradients.buffers import Buffers
from discreet.gradients.choosing import Choices
from discreet.gradients.contributions import Contribution, Rows
from discreet.gradients.native import Kernels
from discreet.gradients.norms import block_norms, blocks_of, squared_norms, sum_of_blocks

BYTES_IN_CACHE = 2**22
BYTES_TO_KEEP = 2**27
_HOPELESS = 4


def outer_products(
    left: Tensor, right: Tensor, buffers: Buffers, choices: Choices, name: int | str
) -> Contribution:
    """The contribution sum_t left_t right_t^T of [B, T, m] and [B, T, n] to a matrix [m, n].

    Args:
        left: Gradients of the outputs.
        right: Inputs.
        buffers: Scratch memory.
        choices: The way that is taken where there are several.
        name: Sets this use apart from the model's others.
    """
    _, positions, m = left.shape
    n = right.shape[2]
    if positions == 1:
        return Outer(left[:, 0], right[:, 0])
    ways: dict[str, Callable[[], Contribution]] = {
        "products": lambda: Positions(left, right, buffers),
        "products, kept": lambda: kept_products(left, right, buffers, (name, "rows")),
        "gram": lambda: Gram(left, right, buffers),
    }
    if left.shape[0] * m * n * left.element_size() > BYTES_TO_KEEP:
        del ways["products, kept"]
    if positions * (m + n) > _HOPELESS * m * n:
        del ways["gram"]
    elif _HOPELESS * positions * (m + n) < m * n:
        ways = {"gram": ways["gram"]}
    kernels = choices.kernels_for(left)
    if kernels is not None and "products" in ways:
        ways["compiled"] = lambda: Compiled(left, right, buffers, kernels)
        if "products, kept" in ways:
            ways["compiled, kept"] = lambda: compiled_rows(left, right, buffers, kernels, (name, "rows"))
    return choices.take(f"sequence {positions} {m}x{n}", ways, (m, n), left)


class Outer(Contribution):
    """One position: the gradient is an outer product, whose norm is the product of the norms."""

    def __init__(self, left: Tensor, right: Tensor) -> None:
        self.left, self.right = left, right

    def squared(self) -> Tensor:
        """Each record's squared norm, [B] in float64."""
        return squared_norms(self.left) * squared_norms(self.right)

    def rows(self) -> Tensor:
        """Each record's gradient, [B, m, n]."""
        return self.left.unsqueeze(2) * self.right.unsqueeze(1)

    def add_weighted(self, weights: Tensor, out: Tensor) -> None:
        """Add the weighted sum to `out`."""
        out.addmm_((self.left * weights.unsqueeze(1)).t(), self.right)


class Positions(Contribution):
    """Several positions: gradients are made in chunks and measured; one matrix product finishes."""

    def __init__(self, left: Tensor, right: Tensor, buffers: Buffers) -> None:
        self.left, self.right = left, right
        self._buffers = buffers
        self._squared: Tensor | None = None

    def _measure(self) -> Tensor:
        return products(self.left, self.right, self._buffers, None)[0]

    def squared(self) -> Tensor:
        """Each record's squared norm, [B] in float64."""
        if self._squared is None:
            self._squared = self._measure()
        return self._squared

    def rows(self) -> Tensor:
        """Each record's gradient, [B, m, n]."""
        return torch.bmm(self.left.transpose(1, 2), self.right)

    def add_weighted(self, weights: Tensor, out: Tensor) -> None:
        """Add the weighted sum to `out`."""
        scaled = self._buffers.get("scaled", tuple(self.left.shape), self.left)
        torch.mul(self.left, weights.view(-1, 1, 1), out=scaled)
        out.addmm_(scaled.flatten(0, 1).t(), self.right.flatten(0, 1))


class Gram(Positions):
    """The squared norm is the inner product of the two Gram matrices [T, T]; nothing of size m n is made.

    The terms of that inner product may cancel. What rounding can then hide is of the order of one unit in the
    last place of (sum_t |left_t| |right_t|)^2, which is added.
    """

    def _measure(self) -> Tensor:
        left, right = self.left, self.right
        records, positions, _ = left.shape
        grams = []
        for name, side in (("left gram", left), ("right gram", right)):
            gram = self._buffers.get(name, (records, positions, positions), side)
            grams.append(torch.bmm(side, side.transpose(1, 2), out=gram))
        return gram_product(*grams)


class Compiled(Positions):
    """As `Positions`, with each record's gradient in the processor's registers only."""

    def __init__(self, left: Tensor, right: Tensor, buffers: Buffers, kernels: Kernels) -> None:
        super().__init__(left, right, buffers)
        self._kernels = kernels

    def _measure(self) -> Tensor:
        return self._kernels.products(self.left, self.right)


def compiled_rows(left: Tensor, right: Tensor, buffers: Buffers, kernels: Kernels, name: Hashable) -> Rows:
    """The gradients by the compiled kernels, kept."""
    rows = buffers.get(name, (len(left), left.shape[2], right.shape[2]), left)
    return Rows(rows, kernels.products(left, right, out=rows))


def joined(parts: Sequence[Positions], buffers: Buffers, choices: Choices, name: int | str) -> Contribution:
    """The contribution of a matrix that was used several times: its uses are so many positions more."""
    left, right = (torch.cat([getattr(part, side) for part in parts], dim=1) for side in ("left", "right"))
    return outer_products(left, right, buffers, choices, name)


def gram_product(first: Tensor, second: Tensor) -> Tensor:
    """The inner products [B] of Gram matrices [B, T, T], rounded up for what cancellation may hide."""
    records = first.shape[0]
    # Row by row first: a sum over all T^2 terms at once would lose digits in float32.
    rows = torch.bmm(first.view(-1, 1, first.shape[2]), second.view(-1, second.shape[2], 1)).view(records, -1)
    diagonals = first.diagonal(dim1=1, dim2=2).double(), second.diagonal(dim1=1, dim2=2).double()
    lengths = (diagonals[0].clamp(min=0) * diagonals[1].clamp(min=0)).sqrt().sum(1)
    return rows.double().sum(1) + torch.finfo(first.dtype).eps * lengths.square()


def products(left: Tensor, right: Tensor, buffers: Buffers, name: Hashable | None) -> tuple[Tensor, Tensor]:
    """Squared norms [B] and gradients [B, m, n], by chunks that stay in cache; without a name norms only."""
    records, _, m = left.shape
    n = right.shape[2]
    step = max(1, BYTES_IN_CACHE // (m * n * left.element_size()))
    rows = buffers.get(name or "chunk", (records if name else min(step, records), m, n), left)
    norms = left.new_empty(records, blocks_of(m * n))
    for start in range(0, records, step):
        part = slice(start, min(start + step, records))
        chunk = rows[part] if name else rows[: part.stop - start]
        torch.bmm(left[part].transpose(1, 2), right[part], out=chunk)
        block_norms(chunk, norms[part])
    return sum_of_blocks(norms), rows


def kept_products(left: Tensor, right: Tensor, buffers: Buffers, name: Hashable) -> Rows:
    """The gradients, kept."""
    squared, rows = products(left, right, buffers, name)
    return Rows(rows, squared)

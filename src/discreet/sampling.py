"""Which records are in a batch, and what the accountant may assume of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from discreet.noise.key import Stream


@dataclass(frozen=True, kw_only=True)
class PoissonSampler:
    """Each record is in a batch by its own coin, afresh for every batch.

    Guarantee: whether one record is present is independent of all others and of every other batch, with a
    probability of at most `rate`. That is the sampling that the subsampled Gaussian's accounting assumes
    (add or remove one record). Batches vary in size and can be empty.
    """

    examples: int
    rate: float

    def __post_init__(self) -> None:
        if self.examples < 2:
            raise ValueError(f"examples is {self.examples}; private training needs at least 2 records")
        if not 0.0 < self.rate <= 1.0:
            raise ValueError(f"rate is {self.rate}; a sample rate lies in (0, 1]")

    @property
    def expected_batch_size(self) -> float:
        """The public constant that sums are divided by."""
        return self.examples * self.rate

    def draw(self, stream: Stream) -> Tensor:
        """The indices of one batch, in ascending order.

        A record is in when its 63 random bits, read as a number, lie below floor(rate * 2**63): the true rate
        is never above the stated one.
        """
        import torch

        if self.rate == 1.0:
            return torch.arange(self.examples)
        threshold = int(self.rate * 2**63)
        return (stream.words(self.examples) & (2**63 - 1)).lt(threshold).nonzero().squeeze(1)

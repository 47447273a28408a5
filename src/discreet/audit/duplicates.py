"""Records that occur several times: how many there are, and what is left of the guarantee for them."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from discreet.data import Records

_AT_ONCE = 4096


@dataclass(frozen=True, kw_only=True)
class Duplicates:
    """How often records repeat, exactly. It is read off the records: for the person who holds them, and nobody else.

    Attributes:
        records: how many there are.
        repeated: how many of them have at least one equal.
        groups: how many different records occur more than once.
        largest: how often the most frequent record occurs.
        conflicting: how many inputs occur with more than one target.
    """

    records: int
    repeated: int
    groups: int
    largest: int
    conflicting: int

    def sentence(self) -> str:
        """The counts in a sentence or two."""
        if self.largest < 2:
            return f"No two of the {self.records:,} records are equal."
        told = (
            f"{self.repeated:,} of the {self.records:,} records occur more than once, as {self.groups:,} different "
            f"ones; the most frequent occurs {self.largest} times."
        )
        if self.conflicting:
            told += f" {self.conflicting:,} inputs occur with different targets."
        return told


def duplicates(records: Records) -> Duplicates:
    """Count equal records by a digest of every bit of the input, and of the target."""
    inputs: Counter[bytes] = Counter()
    whole: Counter[bytes] = Counter()
    for start in range(0, len(records), _AT_ONCE):
        rows, targets = records.batch(torch.arange(start, min(start + _AT_ONCE, len(records))))
        # Zero has two signs and is one number.
        values = (rows + 0).contiguous().numpy()
        for row, target in zip(values, targets.tolist(), strict=True):
            digest = hashlib.blake2b(row.tobytes(), digest_size=16).digest()
            inputs[digest] += 1
            whole[digest + target.to_bytes(8, "little")] += 1
    counts = [count for count in whole.values() if count > 1]
    different = Counter(key[:16] for key in whole)
    return Duplicates(
        records=len(records),
        repeated=sum(counts),
        groups=len(counts),
        largest=max(whole.values()),
        conflicting=sum(1 for count in different.values() if count > 1),
    )

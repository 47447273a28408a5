"""Texts as token ids by public hashing: no vocabulary is ever chosen from private texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

WORD = re.compile(r"[a-z0-9']+")
BREAK = re.compile(r"<br\s*/?>")
PADDING = 0


@dataclass(frozen=True, kw_only=True)
class HashedWords:
    """The first `length` words of a text, each hashed to an id from 1 to vocabulary - 1; 0 pads short texts.

    **Guarantee.** The id of a word is a function of the word alone. Which words occur in private texts
    therefore has no influence on how any other text is encoded.

    Attributes:
        vocabulary: Number of ids, the padding included.
        length: Number of tokens of every encoded text.
    """

    vocabulary: int = 20_000
    length: int = 256

    def __post_init__(self) -> None:
        if self.vocabulary < 2:
            raise ValueError(f"vocabulary is {self.vocabulary}; it must be at least 2")
        if self.length < 1:
            raise ValueError(f"length is {self.length}; it must be at least 1")

    def encode(self, texts: Iterable[str]) -> Tensor:
        """One row of ids per text."""
        import numpy as np
        import torch

        known: dict[str, int] = {}
        rows = []
        for text in texts:
            row = np.full(self.length, PADDING, dtype=np.int64)
            words = WORD.findall(BREAK.sub(" ", text.lower()))[: self.length]
            for place, word in enumerate(words):
                token = known.get(word)
                if token is None:
                    token = known[word] = self.token(word)
                row[place] = token
            rows.append(row)
        stacked = np.stack(rows) if rows else np.empty((0, self.length), dtype=np.int64)
        return torch.from_numpy(stacked)

    def token(self, word: str) -> int:
        """The id of a word."""
        digest = blake2b(word.encode(), digest_size=8, person=b"discreet-words").digest()
        return 1 + int.from_bytes(digest, "big") % (self.vocabulary - 1)

    def schema(self) -> Mapping[str, Any]:
        """The encoding as part of a data set's schema."""
        return {
            "kind": "text",
            "words": WORD.pattern,
            "hash": "blake2b-64, person discreet-words",
            "vocabulary": self.vocabulary,
            "length": self.length,
        }

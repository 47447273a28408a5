"""Randomness by key: every draw is a function of (run key, release, trial, purpose).

A run that crashed and is resumed computes a release again with the draws that it had, so that no release is ever
drawn twice. The generator is AES-256 in counter mode; each (release, trial, purpose) has a key of its own, derived
by keyed BLAKE2b.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import CorruptFile

if TYPE_CHECKING:
    from torch import Tensor

_BYTES = 32


class Stream:
    """The random bits of one purpose in one trial, read once from the start."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int) -> Tensor:
        """The next `count` 64-bit words, as int64."""
        import torch

        buffer = bytearray(8 * count)
        if count:
            # Counter mode adds its keystream to the text: the text here is zero, in place.
            self._cipher.update_into(memoryview(buffer), memoryview(buffer))
        return torch.frombuffer(buffer, dtype=torch.int64) if count else torch.empty(0, dtype=torch.int64)


@dataclass(frozen=True)
class RunKey:
    """The secret from which all of a run's randomness follows.

    Guarantee: only a key from the operating system (`RunKey.secret`) gives differential privacy against somebody
    who knows this code. A key made from a seed (`RunKey.from_seed`) can be guessed: it is for research, and the
    certificate of such a run says that it is no guarantee.
    """

    material: bytes = field(repr=False)
    seed: int | None = None

    @classmethod
    def secret(cls) -> RunKey:
        """A fresh key from the operating system."""
        return cls(secrets.token_bytes(_BYTES))

    @classmethod
    def from_seed(cls, seed: int) -> RunKey:
        """A key that anyone who knows `seed` can make again."""
        return cls(
            hashlib.blake2b(str(int(seed)).encode(), digest_size=_BYTES, person=b"discreet seed").digest(),
            seed,
        )

    @property
    def is_secret(self) -> bool:
        """Whether the key came from the operating system."""
        return self.seed is None

    @property
    def fingerprint(self) -> str:
        """What tells this key from another and says nothing else about it."""
        return hashlib.blake2b(key=self.material, person=b"fingerprint", digest_size=16).hexdigest()

    def stream(self, purpose: str, release: int, trial: int = 0) -> Stream:
        """The random bits for one purpose in one trial of one release."""
        if len(purpose.encode()) > 16:
            raise ValueError(f"purpose is {purpose!r}; it may have at most 16 bytes")
        place = struct.pack("<QQ", release, trial)
        return Stream(
            hashlib.blake2b(place, key=self.material, person=purpose.encode(), digest_size=_BYTES).digest()
        )

    def save(self, path: Path) -> None:
        """Write the key, readable by its owner only, and make it durable."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{'secret' if self.seed is None else self.seed} {self.material.hex()}\n")
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def load(cls, path: Path) -> RunKey:
        """The key that `save` wrote."""
        try:
            origin, material = path.read_text().split()
            key = cls(bytes.fromhex(material), None if origin == "secret" else int(origin))
        except (ValueError, UnicodeDecodeError):
            raise CorruptFile(f"{path} is not a run key; without it the run cannot be resumed") from None
        if len(key.material) != _BYTES:
            raise CorruptFile(f"{path} holds {len(key.material)} bytes of key; a run key has {_BYTES}")
        return key

"""What tells tensors, records and models from others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from discreet.gradients.batches import tensors_of
from discreet.noise.key import RunKey

if TYPE_CHECKING:
    from discreet.training.run import Data

_RECORDS_COMPARED = 1024


def fingerprint(tensors: Iterable[tuple[str, Tensor]], *, key: bytes = b"", start: str = "") -> str:
    """A digest of named tensors in their order: names, types, shapes and every bit of the values.

    Args:
        tensors: names and tensors.
        key: makes the digest say nothing to those who do not have it.
        start: a text that belongs to the digest as well.
    """
    digest = hashlib.blake2b(start.encode(), key=key, digest_size=32)
    for name, tensor in tensors:
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def of_records(data: Data, key: RunKey) -> str:
    """What tells these records from others, under the secret key: the number, all targets, and some of the inputs.

    A run resumed on other records would put old noise on new sums.
    """
    some = torch.linspace(0, len(data) - 1, min(len(data), _RECORDS_COMPARED)).long()
    inputs, targets = data.batch(some)
    parts = [*(("inputs", tensor) for tensor in tensors_of(inputs)), ("some", targets), ("all", data.targets)]
    return fingerprint(parts, key=key.material, start="records")


def of_frozen(model: nn.Module) -> str:
    """What tells the model's frozen parameters and buffers from others."""
    frozen = [(name, each) for name, each in model.named_parameters() if not each.requires_grad]
    return fingerprint([*frozen, *model.named_buffers()])

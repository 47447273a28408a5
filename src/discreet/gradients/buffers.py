"""Large buffers that are used again: fresh memory costs several times what warm memory does."""

from collections.abc import Hashable
from math import prod

import torch
from torch import Tensor


class Buffers:
    """Named scratch tensors; asking again for a name gives the same memory, grown where needed."""

    def __init__(self) -> None:
        self._held: dict[Hashable, Tensor] = {}

    def clear(self) -> None:
        """Give all memory back."""
        self._held.clear()

    def get(self, name: Hashable, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """An uninitialised contiguous tensor of this shape, of the type and on the device of `like`."""
        size = prod(shape)
        held = self._held.get(name)
        if held is None or held.numel() < size or held.dtype != like.dtype or held.device != like.device:
            # The size of a Poisson batch varies: a little more than asked for saves most later growth.
            held = self._held[name] = torch.empty(size + size // 8, dtype=like.dtype, device=like.device)
        return held[:size].view(shape)

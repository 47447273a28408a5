"""Images kept as bytes and scaled when a batch is gathered: a quarter of the memory of float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

CHANNELS = (1, 3)


@dataclass(frozen=True, kw_only=True)
class PixelScale:
    """Maps a byte x to (x / 255 - mean) / deviation with public constants, the same for every pixel.

    The default maps to [-1, 1]. It is no statistic of any data set, so nothing is read off private images.
    """

    mean: float = 0.5
    deviation: float = 0.5

    def __post_init__(self) -> None:
        if not self.deviation > 0:
            raise ValueError(f"deviation is {self.deviation}; it must be greater than 0")

    def apply(self, images: Tensor) -> Tensor:
        """Images of bytes as scaled float32."""
        import torch

        scaled = images.to(torch.float32).mul_(1.0 / (255.0 * self.deviation))
        return scaled.sub_(self.mean / self.deviation)

    def schema(self) -> Mapping[str, Any]:
        """The scaling as part of a data set's schema."""
        return {
            "kind": "image",
            "pixels": "(x / 255 - mean) / deviation",
            "mean": self.mean,
            "deviation": self.deviation,
        }


class Pixels:
    """An `InputStore` over images of shape (records, channels, height, width) held as uint8."""

    def __init__(self, images: Tensor, scale: PixelScale) -> None:
        import torch

        if images.dtype != torch.uint8 or images.ndim != 4:
            raise ValueError(f"images are {images.dtype} of {images.ndim} dimensions; need uint8 of 4")
        self.images = images
        self.scale = scale

    @classmethod
    def of_array(cls, images: NDArray[np.uint8], scale: PixelScale | None = None) -> Pixels:
        """Images with their 1 or 3 channels first, last or (grey) left out."""
        import numpy as np
        import torch

        if images.ndim == 3:
            images = images[:, None]
        elif images.shape[1] not in CHANNELS and images.shape[3] in CHANNELS:
            images = images.transpose(0, 3, 1, 2)
        return cls(torch.from_numpy(np.array(images)), scale or PixelScale())

    def __len__(self) -> int:
        return len(self.images)

    def gather(self, indices: Tensor) -> Tensor:
        """The images at `indices` as scaled float32."""
        return self.scale.apply(self.images.index_select(0, indices))

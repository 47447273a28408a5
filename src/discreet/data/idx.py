"""The IDX files of MNIST and of the data sets that took over its form."""

from __future__ import annotations

import gzip
import math
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.data.description import Description
from discreet.data.folders import find_file
from discreet.data.pixels import Pixels, PixelScale
from discreet.data.records import Records, Splits
from discreet.errors import CorruptFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNSIGNED_BYTE = 0x08


def load(folder: Path, *, name: str, class_names: tuple[str, ...], scale: PixelScale | None = None) -> Splits:
    """The official 60,000 training and 10,000 test images, the latter as a declared non-private holdout."""
    scale = scale or PixelScale()
    train = _split(folder, "train", name=name, class_names=class_names, scale=scale)
    test = _split(folder, "t10k", name=f"{name} test split", class_names=class_names, scale=scale)
    return Splits(train=train, public=test, declared="non-private holdout")


def read(path: Path) -> NDArray[np.uint8]:
    """The array in an IDX file of bytes, plain or gzipped."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError) as error:
        raise CorruptFile(f"{path} cannot be unpacked ({error}); remove it and get it again") from error
    if len(raw) < 4 or raw[:3] != bytes((0, 0, UNSIGNED_BYTE)):
        raise CorruptFile(f"{path} is not an IDX file of bytes")
    dimensions = raw[3]
    start = 4 + 4 * dimensions
    if len(raw) < start:
        raise CorruptFile(f"{path} ends inside its header")
    shape = struct.unpack(f">{dimensions}I", raw[4:start])
    if len(raw) - start != math.prod(shape):
        raise CorruptFile(
            f"{path} holds {len(raw) - start} bytes of data; its header promises {math.prod(shape)}"
        )
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape)


def _split(
    folder: Path, prefix: str, *, name: str, class_names: tuple[str, ...], scale: PixelScale
) -> Records:
    import torch

    images = read(find_file(folder, f"{prefix}-images-idx3-ubyte"))
    labels = read(find_file(folder, f"{prefix}-labels-idx1-ubyte"))
    if images.ndim != 3 or labels.ndim != 1:
        raise CorruptFile(f"{folder}: the {prefix} files do not hold images and labels")
    description = Description(
        name=name,
        classes=len(class_names),
        class_names=class_names,
        input_shape=(1, *images.shape[1:]),
        schema=scale.schema(),
        size_is_public=True,
        public_facts=("a published data set: its size, its classes and the form of its images are public",),
    )
    pixels = torch.from_numpy(images.copy()).unsqueeze(1)
    return Records(Pixels(pixels, scale), torch.from_numpy(labels.astype(np.int64)), description)

"""Street View House Numbers, cropped: MATLAB 5 files with X (32, 32, 3, n) and y, where 10 stands for 0."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from discreet.data.description import Description
from discreet.data.pixels import Pixels, PixelScale
from discreet.data.records import Records, Splits
from discreet.errors import CorruptFile

LABEL_OF_ZERO = 10


def load(folder: Path, *, scale: PixelScale | None = None) -> Splits:
    """The 73,257 training and 26,032 test digits; the `extra` set is not read."""
    scale = scale or PixelScale()
    train = read(folder / "train_32x32.mat", name="svhn", scale=scale)
    test = read(folder / "test_32x32.mat", name="svhn test split", scale=scale)
    return Splits(train=train, public=test, declared="non-private holdout")


def read(path: Path, *, name: str, scale: PixelScale) -> Records:
    """The digits of one file."""
    import torch
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        content = loadmat(path, variable_names=["X", "y"])
    except (MatReadError, OSError, ValueError, TypeError, NotImplementedError) as error:
        raise CorruptFile(f"{path} is no MATLAB 5 file that can be read ({error}); get it again") from error
    images, labels = content.get("X"), content.get("y")
    if images is None or labels is None or images.shape[:3] != (32, 32, 3) or images.dtype != np.uint8:
        raise CorruptFile(f"{path} does not hold images X of 32 x 32 x 3 bytes and labels y")
    targets = labels.reshape(-1).astype(np.int64)
    targets[targets == LABEL_OF_ZERO] = 0
    pixels = torch.from_numpy(np.ascontiguousarray(images.transpose(3, 2, 0, 1)))
    description = Description(
        name=name,
        classes=10,
        class_names=tuple("0123456789"),
        input_shape=(3, 32, 32),
        schema=scale.schema(),
        size_is_public=True,
        public_facts=("a published data set: its size, its classes and the form of its images are public",),
    )
    return Records(Pixels(pixels, scale), torch.from_numpy(targets), description)

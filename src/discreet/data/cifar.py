"""CIFAR-10 and CIFAR-100 in their binary form: label bytes, then 3 x 32 x 32 pixels. Nothing is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.data.description import Description
from discreet.data.pixels import Pixels, PixelScale
from discreet.data.records import Records, Splits
from discreet.errors import CorruptFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHAPE = (3, 32, 32)
CIFAR_10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_CIFAR_100 = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
    camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup
    dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower
    leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid
    otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray
    road rocket rose sea seal shark shrew skunk skyscraper snail snake spider squirrel streetcar
    sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
    wardrobe whale willow_tree wolf woman worm
"""
CIFAR_100 = tuple(_CIFAR_100.split())


def load_10(folder: Path, *, scale: PixelScale | None = None) -> Splits:
    """CIFAR-10 from the folder that holds `cifar-10-batches-bin`."""
    batches = folder / "cifar-10-batches-bin"
    train = [batches / f"data_batch_{number}.bin" for number in range(1, 6)]
    return _splits("cifar-10", CIFAR_10, train, [batches / "test_batch.bin"], label_bytes=1, scale=scale)


def load_100(folder: Path, *, scale: PixelScale | None = None) -> Splits:
    """CIFAR-100 with its 100 fine labels, from the folder that holds `cifar-100-binary`."""
    batches = folder / "cifar-100-binary"
    return _splits(
        "cifar-100", CIFAR_100, [batches / "train.bin"], [batches / "test.bin"], label_bytes=2, scale=scale
    )


def read(path: Path, *, label_bytes: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images and labels of one file; of several label bytes the last is the fine label."""
    raw = np.fromfile(path, dtype=np.uint8)
    width = label_bytes + int(np.prod(SHAPE))
    if not raw.size or raw.size % width:
        raise CorruptFile(f"{path} holds {raw.size} bytes, which is no multiple of {width}; get it again")
    rows = raw.reshape(-1, width)
    return rows[:, label_bytes:].reshape(-1, *SHAPE), rows[:, label_bytes - 1].astype(np.int64)


def _splits(
    name: str,
    class_names: tuple[str, ...],
    train: list[Path],
    test: list[Path],
    *,
    label_bytes: int,
    scale: PixelScale | None,
) -> Splits:
    scale = scale or PixelScale()
    description = Description(
        name=name,
        classes=len(class_names),
        class_names=class_names,
        input_shape=SHAPE,
        schema=scale.schema(),
        size_is_public=True,
        public_facts=("a published data set: its size, its classes and the form of its images are public",),
    )
    return Splits(
        train=_records(train, description, label_bytes, scale),
        public=_records(test, description.renamed(f"{name} test split"), label_bytes, scale),
        declared="non-private holdout",
    )


def _records(paths: list[Path], description: Description, label_bytes: int, scale: PixelScale) -> Records:
    import torch

    parts = [read(path, label_bytes=label_bytes) for path in paths]
    images = np.concatenate([part[0] for part in parts])
    labels = np.concatenate([part[1] for part in parts])
    return Records(Pixels(torch.from_numpy(images), scale), torch.from_numpy(labels), description)

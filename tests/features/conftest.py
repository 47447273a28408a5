"""Small images for tests of features."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from discreet.data import Records, Splits


def _some_images(count: int = 12, side: int = 12, *, channels: int = 1, seed: int = 0) -> Records:
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (count, channels, side, side), generator=generator, dtype=torch.uint8)
    return Records.from_arrays(images, torch.arange(count) % 2, name="pictures", classes=2)


@pytest.fixture
def some_images() -> Callable[..., Records]:
    return _some_images


@pytest.fixture
def images() -> Records:
    return _some_images()


@pytest.fixture
def splits() -> Splits:
    return Splits(train=_some_images(), public=_some_images(8, seed=1), declared="public")

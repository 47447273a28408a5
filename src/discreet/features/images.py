"""Pixels as features want them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from discreet.data import Description


def from_zero_to_one(form: Description) -> Callable[[Tensor], Tensor]:
    """Takes back the public scaling of images of bytes, so that black is 0 and white is 1; others stay as they are."""
    if form.schema.get("kind") != "image":
        return lambda images: images
    mean, deviation = float(form.schema["mean"]), float(form.schema["deviation"])
    return lambda images: images * deviation + mean

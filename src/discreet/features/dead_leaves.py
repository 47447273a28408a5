"""Images made of nothing but occluding shapes: natural statistics without a single photograph.

Leaves of random size, place, shape and shade fall onto each other (Matheron 1968; Lee, Mumford and Huang 2001). With a
power law for the sizes such images share edges, scales and correlations with photographs. Whatever is learned from
them is public: no record was looked at.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Generator, Tensor

_LEAVES = 40
_SMALLEST = 1.5
"""Pixels."""
_POWER = 0.75
_TINT = 0.35
_SLOPE = 0.04
_GRAIN = 0.02


def dead_leaves(count: int, colours: int, height: int, width: int, *, seed: int) -> Tensor:
    """So many images with values from 0 to 1; the same ones for the same seed.

    Args:
        count: how many.
        colours: 1 for grey, otherwise shades whose colours differ a little.
        height: in pixels.
        width: in pixels.
        seed: of the draws; public.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    rows = torch.arange(height, dtype=torch.float32).reshape(1, height, 1)
    columns = torch.arange(width, dtype=torch.float32).reshape(1, 1, width)
    images = _shade(count, colours, generator).expand(count, colours, height, width).clone()
    for _ in range(_LEAVES):
        x, y = (
            columns - _uniform(count, generator) * 1.2 * width + 0.1 * width,
            rows - _uniform(count, generator) * 1.2 * height + 0.1 * height,
        )
        inside = _leaf(x, y, generator)[:, None]
        slope = ((_uniform(count, generator) - 0.5) * x + (_uniform(count, generator) - 0.5) * y) * _SLOPE
        leaf = _shade(count, colours, generator) + slope[:, None]
        images = torch.lerp(images, leaf.expand_as(images), inside.expand_as(images))
    grain = torch.randn(images.shape, generator=generator)
    return (images + _GRAIN * grain).clamp(0.0, 1.0)


def _leaf(x: Tensor, y: Tensor, generator: Generator) -> Tensor:
    """How much of each pixel a leaf covers: an ellipse or a rectangle, turned, with a soft edge."""
    import torch

    count = len(x)
    turn = math.pi * _uniform(count, generator)
    stretch = torch.exp(2.4 * (_uniform(count, generator) - 0.5))
    along = (x * turn.cos() + y * turn.sin()) * stretch
    across = (y * turn.cos() - x * turn.sin()) / stretch
    round_ones = _uniform(count, generator) < 0.5
    distance = torch.where(
        round_ones, (along.square() + across.square()).sqrt(), torch.maximum(along.abs(), across.abs())
    )
    radius = _SMALLEST / (0.97 * _uniform(count, generator) + 0.03).pow(_POWER)
    return ((radius - distance) * 1.5 + 0.5).clamp(0.0, 1.0)


def _shade(count: int, colours: int, generator: Generator) -> Tensor:
    import torch

    shade = torch.rand(count, 1, 1, 1, generator=generator)
    if colours == 1:
        return shade
    tint = torch.rand(count, colours, 1, 1, generator=generator) - 0.5
    return (shade + _TINT * tint).clamp(0.0, 1.0)


def _uniform(count: int, generator: Generator) -> Tensor:
    import torch

    return torch.rand(count, 1, 1, generator=generator)

"""Networks of fully connected layers."""

from __future__ import annotations

import math

from torch import nn

from discreet.models.activations import activation


def linear(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """Logistic regression: one affine map."""
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), classes))


def mlp(
    input_shape: tuple[int, ...], classes: int, *, width: int = 128, depth: int = 1, act: str = "tanh"
) -> nn.Module:
    """`depth` hidden layers of `width` units."""
    layers: list[nn.Module] = [nn.Flatten()]
    features = math.prod(input_shape)
    for _ in range(depth):
        layers += [nn.Linear(features, width), activation(act)]
        features = width
    return nn.Sequential(*layers, nn.Linear(features, classes))

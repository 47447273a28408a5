"""The small convolutional networks that the papers compare methods on."""

from __future__ import annotations

import torch
from torch import nn

from discreet.models.activations import activation


def cnn_mnist(input_shape: tuple[int, ...], classes: int, *, act: str = "tanh") -> nn.Module:
    """The network for MNIST and Fashion-MNIST (Papernot et al. 2021): 26,010 parameters at 28 x 28."""
    body = nn.Sequential(
        nn.Conv2d(image_channels(input_shape), 16, 8, stride=2, padding=2),
        activation(act),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, 4, stride=2),
        activation(act),
        nn.MaxPool2d(2, stride=1),
        nn.Flatten(),
    )
    features = _features(body, input_shape)
    return nn.Sequential(*body, nn.Linear(features, 32), activation(act), nn.Linear(32, classes))


def cnn_cifar(input_shape: tuple[int, ...], classes: int, *, act: str = "tanh") -> nn.Module:
    """The network for CIFAR-10 (Papernot et al. 2021): 550,570 parameters at 3 x 32 x 32."""
    layers: list[nn.Module] = []
    channels = image_channels(input_shape)
    for width in (32, 64, 128):
        layers += [nn.Conv2d(channels, width, 3, padding=1), activation(act)]
        layers += [nn.Conv2d(width, width, 3, padding=1), activation(act)]
        layers += [nn.MaxPool2d(2)]
        channels = width
    body = nn.Sequential(*layers, nn.Flatten())
    features = _features(body, input_shape)
    return nn.Sequential(*body, nn.Linear(features, 128), activation(act), nn.Linear(128, classes))


def cnn_scatter(
    input_shape: tuple[int, ...], classes: int, *, act: str = "tanh", groups: int = 27, wide: bool = False
) -> nn.Module:
    """The head on scattering features (Tramèr and Boneh, ICLR 2021), after GroupNorm without parameters.

    The plain form is theirs for the 81 x 7 x 7 features of MNIST; `wide` is theirs for CIFAR-10, 243 x 8 x 8.
    """
    channels = image_channels(input_shape)
    normalise = nn.GroupNorm(groups, channels, affine=False)
    if wide:
        body = nn.Sequential(
            normalise,
            nn.Conv2d(channels, 64, 3, padding=1),
            activation(act),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 64, 3, padding=1),
            activation(act),
            nn.Flatten(),
        )
        return nn.Sequential(*body, nn.Linear(_features(body, input_shape), classes))
    body = nn.Sequential(
        normalise,
        nn.Conv2d(channels, 16, 3, stride=2, padding=1),
        activation(act),
        nn.Conv2d(16, 32, 3, padding=1),
        activation(act),
        nn.Flatten(),
    )
    features = _features(body, input_shape)
    return nn.Sequential(*body, nn.Linear(features, 32), activation(act), nn.Linear(32, classes))


def image_channels(input_shape: tuple[int, ...]) -> int:
    """Number of channels of an image's shape; ValueError where it is none."""
    if len(input_shape) != 3:
        raise ValueError(
            f"input_shape is {input_shape}; a convolutional network needs (channels, height, width)"
        )
    return input_shape[0]


def _features(body: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Size of what `body` gives for one record."""
    try:
        with torch.no_grad():
            return int(body(torch.zeros(1, *input_shape)).shape[1])
    except RuntimeError as error:
        raise ValueError(
            f"input_shape is {input_shape}; the images are too small for this network"
        ) from error

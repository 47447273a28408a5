"""Residual networks with GroupNorm, which normalises every record by itself."""

from __future__ import annotations

from torch import Tensor, nn

from discreet.models.activations import activation
from discreet.models.convolutional import image_channels


class PostActivationBlock(nn.Module):
    """Two convolutions around which the input is added, as in ResNet."""

    def __init__(self, channels: int, width: int, stride: int, groups: int, act: str) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False),
            nn.GroupNorm(groups, width),
            activation(act),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.GroupNorm(groups, width),
        )
        same = stride == 1 and channels == width
        self.shortcut: nn.Module = (
            nn.Identity()
            if same
            else nn.Sequential(
                nn.Conv2d(channels, width, 1, stride=stride, bias=False), nn.GroupNorm(groups, width)
            )
        )
        self.after = activation(act)

    def forward(self, images: Tensor) -> Tensor:
        """The block's output."""
        return self.after(self.body(images) + self.shortcut(images))  # type: ignore[no-any-return]


class PreActivationBlock(nn.Module):
    """Normalisation and activation before each convolution, as in Wide-ResNet."""

    def __init__(self, channels: int, width: int, stride: int, groups: int, act: str) -> None:
        super().__init__()
        self.before = nn.Sequential(nn.GroupNorm(min(groups, channels), channels), activation(act))
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride=stride, padding=1),
            nn.GroupNorm(groups, width),
            activation(act),
            nn.Conv2d(width, width, 3, padding=1),
        )
        same = stride == 1 and channels == width
        self.shortcut: nn.Module = nn.Identity() if same else nn.Conv2d(channels, width, 1, stride=stride)

    def forward(self, images: Tensor) -> Tensor:
        """The block's output."""
        ready = self.before(images)
        shortcut = images if isinstance(self.shortcut, nn.Identity) else self.shortcut(ready)
        return shortcut + self.body(ready)  # type: ignore[no-any-return]


def resnet18_gn(
    input_shape: tuple[int, ...], classes: int, *, width: int = 64, groups: int = 32, act: str = "relu"
) -> nn.Module:
    """ResNet-18 in its form for small images: a 3 x 3 stem and no pooling before the blocks."""
    layers: list[nn.Module] = [
        nn.Conv2d(image_channels(input_shape), width, 3, padding=1, bias=False),
        nn.GroupNorm(groups, width),
        activation(act),
    ]
    channels = width
    for stage in range(4):
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(PostActivationBlock(channels, width << stage, stride, groups, act))
            channels = width << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def wrn_16_4(
    input_shape: tuple[int, ...],
    classes: int,
    *,
    depth: int = 16,
    widen: int = 4,
    groups: int = 16,
    act: str = "relu",
) -> nn.Module:
    """Wide-ResNet 16-4 with GroupNorm, the network of De et al. 2022 without weight standardisation."""
    if depth < 10 or (depth - 4) % 6:
        raise ValueError(f"depth is {depth}; it must be 6 k + 4, such as 10, 16, 28 or 40")
    channels = 16
    layers: list[nn.Module] = [nn.Conv2d(image_channels(input_shape), channels, 3, padding=1)]
    for stage in range(3):
        width = (16 << stage) * widen
        for block in range((depth - 4) // 6):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(PreActivationBlock(channels, width, stride, groups, act))
            channels = width
    head = [nn.GroupNorm(groups, channels), activation(act), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, *head, nn.Linear(channels, classes))

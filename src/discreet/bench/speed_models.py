"""The six models on which speed is measured, with made-up records of the right shape."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True)
class BenchModel:
    """A model and its records.

    Attributes:
        what: What it is, in a few words.
        build: Makes it.
        shape: The shape of one record.
        classes: The number of labels.
        vocabulary: The number of tokens if records are texts, else 0.
    """

    what: str
    build: Callable[[], nn.Module]
    shape: tuple[int, ...]
    classes: int = 10
    vocabulary: int = 0

    def batch(self, records: int) -> tuple[Tensor, Tensor]:
        """Made-up records: Gaussian images, or texts in which common words are common."""
        generator = torch.Generator().manual_seed(1)
        labels = torch.randint(0, self.classes, (records,), generator=generator)
        if not self.vocabulary:
            return torch.randn(records, *self.shape, generator=generator), labels
        uniform = torch.rand(records, *self.shape, generator=generator)
        return (self.vocabulary**uniform).long().clamp_(max=self.vocabulary - 1), labels


def _mnist() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )


def _scattering() -> nn.Module:
    return nn.Sequential(
        nn.GroupNorm(27, 81, affine=False),
        nn.Conv2d(81, 16, 3, stride=2, padding=1),
        nn.Tanh(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )


def _cifar() -> nn.Module:
    layers: list[nn.Module] = []
    channels = 3
    for width in (32, 64, 128):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.Tanh(), nn.Conv2d(width, width, 3, padding=1)]
        layers += [nn.Tanh(), nn.MaxPool2d(2)]
        channels = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 128), nn.Tanh(), nn.Linear(128, 10))


class _Imdb(nn.Module):
    """Embedding, linear, LSTM both ways, mean over time, two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.reduce = nn.Embedding(20_000, 100), nn.Linear(100, 32)
        self.recurrent: nn.Module = nn.LSTM(32, 32, batch_first=True, bidirectional=True)
        self.hidden, self.head = nn.Linear(64, 16), nn.Linear(16, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        states, _ = self.recurrent(F.relu(self.reduce(self.embedding(tokens))))
        logits: Tensor = self.head(F.relu(self.hidden(states.mean(1))))
        return logits


class _Residual(nn.Module):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.GroupNorm(32, width) for _ in range(2))
        same = stride == 1 and channels == width
        shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.GroupNorm(32, width))
        self.shortcut = nn.Identity() if same else shortcut

    def forward(self, images: Tensor) -> Tensor:
        hidden = F.relu(self.norms[0](self.first(images)))
        return F.relu(self.norms[1](self.second(hidden)) + self.shortcut(images))


def _resnet() -> nn.Module:
    layers = [nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.GroupNorm(32, 64), nn.ReLU()]
    channels = 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [_Residual(channels, width, stride), _Residual(width, width, 1)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, states: Tensor) -> Tensor:
        records, length, width = states.shape
        parts = self.mix(self.norms[0](states)).view(records, length, 3, self.heads, width // self.heads)
        mixed = F.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4).unbind(0))
        states = states + self.out(mixed.transpose(1, 2).reshape(records, length, width))
        added: Tensor = states + self.down(F.gelu(self.up(self.norms[1](states))))
        return added


class _Transformer(nn.Module):
    def __init__(self, width: int = 128, length: int = 128) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(10_000, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(_Block(width, 4) for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1]).expand(tokens.shape)
        states = self.norm(self.blocks(self.words(tokens) + self.places(places)))
        logits: Tensor = self.head(states.mean(1))
        return logits


MODELS: dict[str, BenchModel] = {
    "M1": BenchModel(what="CNN of the papers for MNIST", build=_mnist, shape=(1, 28, 28)),
    "M2": BenchModel(what="CNN on scattering features", build=_scattering, shape=(81, 7, 7)),
    "M3": BenchModel(what="CNN of the papers for CIFAR-10", build=_cifar, shape=(3, 32, 32)),
    "M4": BenchModel(
        what="LSTM of the papers for IMDb, 80 words", build=_Imdb, shape=(80,), classes=2, vocabulary=20_000
    ),
    "M4L": BenchModel(what="the same, 256 words", build=_Imdb, shape=(256,), classes=2, vocabulary=20_000),
    "M5": BenchModel(what="ResNet-18 with GroupNorm, 32 x 32", build=_resnet, shape=(3, 32, 32)),
    "M6": BenchModel(
        what="transformer, width 128, 2 layers, 128 words",
        build=_Transformer,
        shape=(128,),
        classes=2,
        vocabulary=10_000,
    ),
}

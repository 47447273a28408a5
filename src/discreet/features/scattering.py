"""Scattering features of images (Mallat 2012; Bruna and Mallat 2013), by FFT.

A scattering transform of order two averages the image, the moduli of its wavelet coefficients, and the moduli of the
wavelet coefficients of those: x * phi, |x * psi_1| * phi, ||x * psi_1| * psi_2| * phi. Nothing in it is learned.
Tramèr and Boneh (ICLR 2021) found that private training of a small network on these features beats private training
of a large one on the image. The wavelets, the padding and the order of the channels are those of Kymatio (Andreux et
al. 2020), so that results can be compared; a test holds the numbers to Kymatio's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from discreet.errors import UserError
from discreet.features.feature_map import FeatureMap
from discreet.features.images import from_zero_to_one

if TYPE_CHECKING:
    from torch import Tensor

    from discreet.data import Description

_WIDTH = 0.8
"""The standard deviation of the finest wavelet's envelope, in pixels."""
_FREQUENCY = 3.0 * math.pi / 4.0
"""The frequency of the finest wavelet, in radians per pixel."""
_TILES = 2
"""Over how many copies of the image to each side an envelope is summed to make it periodic."""


@dataclass(frozen=True, kw_only=True)
class Scattering(FeatureMap):
    """Scattering coefficients of order 0 to 2 of every colour channel, normalised per record.

    With the defaults there are 81 channels per colour channel, a quarter as high and as wide as the image: 81 x 7 x 7
    for MNIST, 243 x 8 x 8 for CIFAR-10. Normalising a record by its own mean and variance looks at no other record.

    Args:
        scales: J, the number of scales; the features are 2^J times smaller than the image.
        angles: L, the number of orientations.
        groups: into how many groups of channels a record is divided, each brought to mean 0 and variance 1 over its
            channels and places (GroupNorm without parameters); 0 leaves the coefficients as they are.
    """

    name: ClassVar[str] = "scattering"
    summary: ClassVar[str] = "scattering coefficients of images, 81 channels per colour channel"

    scales: int = 2
    angles: int = 8
    groups: int = 27

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.scales <= 6:
            raise UserError(f"scales is {self.scales}; it has to be from 1 to 6")
        if self.angles < 1:
            raise UserError(f"angles is {self.angles}; it has to be at least 1")
        if self.groups < 0:
            raise UserError(f"groups is {self.groups}; it has to be at least 1, or 0 for none")

    @property
    def channels(self) -> int:
        """Channels of features per colour channel."""
        pairs = self.scales * (self.scales - 1) // 2
        return 1 + self.scales * self.angles + pairs * self.angles**2

    def made_for(self, form: Description) -> Callable[[Tensor], Tensor]:
        """The transform for images of this form."""
        import torch

        if len(form.input_shape) != 3 or form.vocabulary is not None:
            raise UserError(f"scattering is for images; the records have inputs of shape {form.input_shape}")
        colours, height, width = form.input_shape
        if min(height, width) <= 2**self.scales:
            raise UserError(f"images of {height} x {width} are too small for {self.scales} scales")
        if self.groups and (colours * self.channels) % self.groups:
            raise UserError(
                f"groups is {self.groups}; it has to divide the {colours * self.channels} channels of features"
            )
        pixels = from_zero_to_one(form)
        transform = Transform((height, width), self.scales, self.angles)

        def features(images: Tensor) -> Tensor:
            found = transform(pixels(images).flatten(0, 1))
            found = found.reshape(len(images), colours * self.channels, *found.shape[2:])
            return torch.group_norm(found, self.groups) if self.groups else found

        return features


class Transform:
    """The scattering transform of grey images of one size: (images, height, width) to (images, channels, h, w)."""

    def __init__(self, size: tuple[int, int], scales: int, angles: int) -> None:
        import torch

        stride = 2**scales
        padded = [(side + stride) // stride * stride + stride for side in size]
        # Reflection at the borders, the odd pixel right and below.
        (top, bottom), (left, right) = (
            ((whole - side) // 2, (whole - side + 1) // 2) for whole, side in zip(padded, size, strict=True)
        )
        self.padding = (left, right, top, bottom)
        # By scale, then by the resolution of what they are applied to; all orientations side by side.
        self.wavelets = [
            [torch.stack([_coarser(each, step) for each in of_scale]) for step in range(scale + 1)]
            for scale, of_scale in enumerate(
                [_morlet(padded, scale, number, angles) for number in range(angles)]
                for scale in range(scales)
            )
        ]
        self.averages = [[_average(side, scales, step) for side in padded] for step in range(scales)]

    def __call__(self, images: Tensor) -> Tensor:
        """The coefficients: order 0, then order 1, then order 2, each by scale and orientation."""
        import torch

        image = torch.nn.functional.pad(images[:, None], self.padding, mode="reflect")
        spectrum = torch.fft.fft2(image)
        zeroth, first, second = self._averaged(image, 0), [], []
        for scale, wavelets in enumerate(self.wavelets):
            moduli = _filtered(spectrum, wavelets[0], 2**scale).abs()
            first.append(self._averaged(moduli, scale))
            if scale + 1 == len(self.wavelets):
                break
            again = torch.fft.fft2(moduli)[:, :, None]
            coarser = [
                self._averaged(
                    _filtered(again, self.wavelets[later][scale], 2 ** (later - scale)).abs(), later
                )
                for later in range(scale + 1, len(self.wavelets))
            ]
            # One first wavelet after the other, each with all of the second ones.
            second.append(torch.cat(coarser, dim=2).flatten(1, 2))
        return torch.cat([zeroth, *first, *second], dim=1)

    def _averaged(self, maps: Tensor, resolution: int) -> Tensor:
        """Local averages of maps at 2^-resolution, one for each pixel of the features."""
        rows, columns = self.averages[resolution]
        return rows @ maps @ columns.T


def _average(side: int, scales: int, resolution: int) -> Tensor:
    """The matrix that averages along one side: a periodic Gaussian window, then every pixel that the features keep.

    The window is a product of one such average along each side.
    """
    import torch

    width = _WIDTH * 2 ** (scales - 1)
    places = torch.arange(-_TILES * side, (_TILES + 1) * side, dtype=torch.float64)
    window = torch.exp(-places.square() / (2.0 * width**2)) / (math.sqrt(2.0 * math.pi) * width)
    periodic = window.view(-1, side).sum(0)
    impulse = torch.fft.ifft(_coarser(torch.fft.fft(periodic).real, resolution)).real
    kept = torch.arange(0, len(impulse), 2 ** (scales - resolution))[1:-1, None]
    average: Tensor = impulse[(kept - torch.arange(len(impulse))) % len(impulse)].float()
    return average


def _filtered(spectrum: Tensor, response: Tensor, step: int) -> Tensor:
    """Every `step`-th pixel of what has this spectrum, filtered: dropping pixels folds the spectrum onto itself."""
    import torch

    height, width = (side // step for side in response.shape[-2:])
    folded: Tensor | float = 0.0
    for row in range(0, step * height, height):
        for column in range(0, step * width, width):
            part = (..., slice(row, row + height), slice(column, column + width))
            folded = folded + spectrum[part] * response[part]
    maps: Tensor = torch.fft.ifft2(folded / step**2)
    return maps


def _gabor(size: list[int], width: float, angle: float, frequency: float, slant: float) -> Tensor:
    """A wave under a Gaussian envelope of this width, longer by 1/slant across its direction, made periodic."""
    import torch

    rows, columns = (torch.arange(-_TILES * side, (_TILES + 1) * side, dtype=torch.float64) for side in size)
    down, across = torch.meshgrid(rows, columns, indexing="ij")
    along = down * math.cos(angle) + across * math.sin(angle)
    beside = across * math.cos(angle) - down * math.sin(angle)
    envelope = torch.exp(-(along.square() + (slant * beside).square()) / (2.0 * width**2))
    wave = torch.polar(envelope * (slant / (2.0 * math.pi * width**2)), frequency * along)
    tiles = 2 * _TILES + 1
    return wave.view(tiles, size[0], tiles, size[1]).sum((0, 2))


def _morlet(size: list[int], scale: int, number: int, angles: int) -> Tensor:
    """The spectrum of one wavelet: a Gabor wave less so much of its envelope that its mean is zero.

    It is real, as the wave turned by half a turn is its own conjugate.
    """
    import torch

    width, frequency, slant = _WIDTH * 2**scale, _FREQUENCY / 2**scale, 4.0 / angles
    angle = (int(angles - angles / 2 - 1) - number) * math.pi / angles
    wave = _gabor(size, width, angle, frequency, slant)
    envelope = _gabor(size, width, angle, 0.0, slant)
    wavelet: Tensor = torch.fft.fft2(wave - wave.sum() / envelope.sum() * envelope)
    return wavelet.real.float()


def _coarser(spectrum: Tensor, steps: int) -> Tensor:
    """The spectrum at a resolution 2^steps times coarser: its low frequencies alone."""
    import torch

    for axis, side in enumerate(spectrum.shape):
        kept, low = side // 2**steps, side // 2 ** (steps + 1)
        ends = spectrum.narrow(axis, 0, low), spectrum.narrow(axis, side - (kept - low), kept - low)
        spectrum = torch.cat(ends, dim=axis) if steps else spectrum
    return spectrum

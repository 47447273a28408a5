"""Random convolutional features of images, whitened by what synthetic images look like.

Filters are patches of synthetic images, whitened (Coates and Ng 2012); the response to a patch of contrast 1 is cut off
below a threshold on either side and averaged over a grid. A linear model on such features beats small networks where
gradients are noisy. Patches, whitening and mean come from dead leaves images: no record is looked at but the one whose
features are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from discreet.errors import UserError
from discreet.features.dead_leaves import dead_leaves
from discreet.features.feature_map import FeatureMap
from discreet.features.images import from_zero_to_one

if TYPE_CHECKING:
    from torch import Tensor

    from discreet.data import Description

_FOR_FILTERS, _FOR_MOMENTS = 3000, 2000
"""Synthetic images that filters are taken from, and that second moments are."""
_PATCHES = 200_000
_AT_ONCE = 50
_CONTRAST = 0.01
"""Added to the variance of a patch: what is flatter than that is not blown up."""
_FLATTEST = 0.15
"""Filters come from patches with a deviation above this."""
_FLOOR = 0.1
"""Added to the patches' eigenvalues before they are whitened."""


@dataclass(frozen=True, kw_only=True)
class RandomFilters(FeatureMap):
    """Responses to random filters, two signs each, on a grid of places; every record has norm 1.

    Args:
        filters: how many; there are twice as many channels.
        side: of a filter, in pixels.
        grid: the responses are averaged over grid x grid places.
        threshold: a response counts by how far it is above; in deviations of the responses to synthetic patches.
        mirrored: whether the features of the mirrored image are added.
        whitening: the share of the mean eigenvalue that is added to each eigenvalue of the channels' second moments
            before these are whitened; 0 leaves the channels as they are.
        seed: of all draws; public.
    """

    name: ClassVar[str] = "random-filters"
    summary: ClassVar[str] = "thresholded responses of images to random filters, whitened by synthetic images"

    filters: int = 384
    side: int = 6
    grid: int = 3
    threshold: float = 1.0
    mirrored: bool = True
    whitening: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("filters", "side", "grid"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}; it has to be at least 1")
        for name in ("threshold", "whitening"):
            if not 0.0 <= getattr(self, name) < float("inf"):
                raise UserError(f"{name} is {getattr(self, name)}; it is a finite number of at least 0")

    def made_for(self, form: Description) -> Callable[[Tensor], Tensor]:
        """The features for images of this form."""
        if len(form.input_shape) != 3 or form.vocabulary is not None:
            raise UserError(
                f"random-filters is for images; the records have inputs of shape {form.input_shape}"
            )
        colours, height, width = form.input_shape
        if min(height, width) < self.side + self.grid - 1:
            raise UserError(
                f"images of {height} x {width} are too small for filters of {self.side} pixels on a grid of {self.grid}"
            )
        pixels, public = from_zero_to_one(form), _made_public(self, colours, height, width)
        return lambda images: public(pixels(images.float()))


@dataclass(frozen=True)
class _Public:
    """The whole map with its constants, all of them from synthetic images."""

    settings: RandomFilters
    filters: Tensor
    mean: Tensor | None = None
    whitener: Tensor | None = None

    def __call__(self, images: Tensor) -> Tensor:
        """One row of unit norm for each image."""
        import torch

        responses = self._responses(images)
        if self.settings.mirrored:
            responses = responses + self._responses(images.flip(-1))
        # Each place of each record by itself: mean 0 and variance 1 over the channels.
        places = responses - responses.mean(dim=1, keepdim=True)
        rows = _unit(places / (places.square().mean(dim=1, keepdim=True) + 1e-4).sqrt())
        if self.mean is not None:
            rows = _unit(rows - self.mean)
        if self.whitener is not None:
            rows = _unit(torch.einsum("dc,nchw->ndhw", self.whitener, rows))
        return rows

    def _responses(self, images: Tensor) -> Tensor:
        import torch
        import torch.nn.functional as F

        settings, grey = self.settings, images.mean(dim=1, keepdim=True)
        mean = F.avg_pool2d(grey, settings.side, 1)
        power = F.avg_pool2d(images.square().mean(dim=1, keepdim=True), settings.side, 1)
        contrast = ((power - mean.square()).clamp(min=0.0) + _CONTRAST).rsqrt()
        # The filters' means are 0: the patch's mean need not be taken away.
        found = F.conv2d(images, self.filters) * contrast
        either = (found - settings.threshold).relu_(), (-found).sub_(settings.threshold).relu_()
        return torch.cat([F.adaptive_avg_pool2d(one, settings.grid) for one in either], dim=1)


@lru_cache(maxsize=4)
def _made_public(settings: RandomFilters, colours: int, height: int, width: int) -> _Public:
    """The constants: filters first, then the mean of the features, then the second moments of what is left."""
    import torch

    with torch.no_grad():
        plain = _Public(settings, _filters(settings, colours, height, width))
        images = dead_leaves(_FOR_MOMENTS, colours, height, width, seed=settings.seed + 1)
        rows = torch.cat([plain(some) for some in torch.split(images, _AT_ONCE)])
        mean = rows.mean(dim=0)
        if settings.whitening == 0.0:
            return _Public(settings, plain.filters, mean)
        channels = _unit(rows - mean).transpose(0, 1).flatten(1).double()
        values, vectors = torch.linalg.eigh(channels @ channels.T / len(rows))
        values = values.clamp(min=0.0) + settings.whitening * values.mean()
        whitener = (vectors * values.rsqrt()) @ vectors.T
        return _Public(settings, plain.filters, mean, whitener.float())


def _filters(settings: RandomFilters, colours: int, height: int, width: int) -> Tensor:
    """Whitened patches of synthetic images, scaled so that synthetic patches have responses of deviation 1."""
    import torch
    import torch.nn.functional as F

    images = dead_leaves(_FOR_FILTERS, colours, height, width, seed=settings.seed)
    size, generator = settings.side, torch.Generator().manual_seed(settings.seed)
    patches = torch.cat(
        [F.unfold(some, size).transpose(1, 2).flatten(0, 1) for some in torch.split(images, _AT_ONCE)]
    )
    patches = patches[torch.randperm(len(patches), generator=generator)[:_PATCHES]]
    patches = patches - patches.mean(dim=1, keepdim=True)
    deviation = (patches.var(dim=1, unbiased=False) + _CONTRAST).sqrt()
    patches = patches / deviation[:, None]
    values, vectors = torch.linalg.eigh((patches.T @ patches / len(patches)).double())
    whitener = ((vectors * (values.clamp(min=0.0) + _FLOOR).rsqrt()) @ vectors.T).float()
    busy = patches[deviation > _FLATTEST]
    if len(busy) < settings.filters:
        raise UserError(f"filters is {settings.filters}; images this small give no more than {len(busy)}")
    chosen = busy[torch.randperm(len(busy), generator=generator)[: settings.filters]] @ whitener
    chosen = _unit(chosen) @ whitener
    chosen = chosen - chosen.mean(dim=1, keepdim=True)
    spread = float((patches[:20_000] @ chosen.T).std())
    filters: Tensor = chosen / spread
    return filters.reshape(settings.filters, colours, size, size)


def _unit(rows: Tensor) -> Tensor:
    """Each record divided by its norm; one that is nothing stays nothing."""
    norms: Tensor = rows.flatten(1).norm(dim=1).clamp(min=1e-6)
    return rows / norms.reshape(-1, *[1] * (rows.dim() - 1))

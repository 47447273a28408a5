"""The layers of a model as parts of its flat vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from math import prod

from discreet.gradients.layout import FlatLayout, module_of


@dataclass(frozen=True, kw_only=True)
class Group:
    """The parameters of one module: a layer.

    Attributes:
        name: the module's.
        span: where they lie in the flat vector.
        matrix: where the layer's weight matrix lies; None where it has none, as in normalisation layers.
        shape: the matrix's shape. A kernel of a convolution is read as output channels times all the rest.
    """

    name: str
    span: slice
    matrix: slice | None = None
    shape: tuple[int, int] = (0, 0)

    @property
    def stage(self) -> str:
        """The part of the model that the layer is in: the first of its names."""
        return self.name.partition(".")[0] or "model"


def whole(layout: FlatLayout) -> Group:
    """All parameters as one group."""
    return Group(name="", span=slice(0, layout.size))


def layers(layout: FlatLayout) -> tuple[Group, ...]:
    """One group per module that has trainable parameters of its own, as layer-wise clipping has them."""
    return tuple(_layers(layout))


def _layers(layout: FlatLayout) -> Iterator[Group]:
    sides = {
        name: (shape[0], prod(shape[1:])) if len(shape) >= 2 else (0, 0)
        for name, shape in zip(layout.names, layout.shapes, strict=True)
    }
    # A module's own parameters lie side by side in torch's order of parameters.
    for module, members in groupby(layout.names, key=module_of):
        names = list(members)
        span = slice(layout.slices[names[0]].start, layout.slices[names[-1]].stop)
        # The largest matrix stands for a layer with several. One row or one column has no spectrum.
        matrix = max(
            (name for name in names if min(sides[name]) > 1), key=lambda name: prod(sides[name]), default=None
        )
        if matrix is None:
            yield Group(name=module, span=span)
        else:
            yield Group(name=module, span=span, matrix=layout.slices[matrix], shape=sides[matrix])

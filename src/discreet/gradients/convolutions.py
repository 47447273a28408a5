"""Per-record gradients of convolution kernels: several exact ways, of which a layer takes the fastest."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Protocol

import torch
from torch import Tensor

from discreet.gradients.buffers import Buffers
from discreet.gradients.choosing import Choices
from discreet.gradients.contributions import Contribution, Rows
from discreet.gradients.native import Kernels
from discreet.gradients.norms import block_norms, blocks_of, sum_of_blocks
from discreet.gradients.sequences import BYTES_IN_CACHE, BYTES_TO_KEEP, gram_product, outer_products

_BYTES_OF_GRAM = 2**28
# Dimensions of a kernel, with those of channels: three of space.
_MOST_COMPILED = 5


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """How a kernel moves over its input; `output_padding` is None unless the convolution is transposed."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    output_padding: tuple[int, ...] | None = None

    def label(self) -> str:
        """The geometry in a few characters."""
        parts = (self.stride, self.padding, self.dilation, (self.groups,), self.output_padding or ())
        return "/".join(",".join(map(str, part)) for part in parts)

    def kernel_gradient(
        self, inputs: Tensor, gradients: Tensor, kernel: tuple[int, ...], groups: int
    ) -> Tensor:
        """The ordinary gradient of a kernel of this shape, summed over the records."""
        stand_in = inputs.new_empty(1).expand(kernel)
        zeros = [0] * len(self.stride)
        found: Tensor = torch.ops.aten.convolution_backward(
            gradients,
            inputs,
            stand_in,
            None,
            self.stride,
            self.padding,
            self.dilation,
            self.output_padding is not None,
            self.output_padding or zeros,
            groups,
            [False, True, False],
        )[1]
        return found


@dataclass(frozen=True, kw_only=True)
class Images:
    """One use of a kernel: inputs [B, C, ...] and output gradients [B, O, ...].

    Attributes:
        inputs: What the kernel moved over.
        gradients: The gradients of what it gave.
        kernel: Its shape.
        geometry: How it moved.
        buffers: Scratch memory.
        use: Sets this use apart from the model's others.
    """

    inputs: Tensor
    gradients: Tensor
    kernel: tuple[int, ...]
    geometry: Geometry
    buffers: Buffers
    use: int

    @property
    def bytes_each(self) -> int:
        """The size of one record's gradient."""
        return prod(self.kernel) * self.inputs.element_size()

    def contribution(self, choices: Choices) -> Contribution:
        """The contribution to the kernel, by the fastest way."""
        simple = self.geometry.groups == 1 and self.geometry.output_padding is None
        if simple and prod(self.kernel[2:]) == 1 and not any(self.geometry.padding):
            return Pointwise(self, choices)
        ways: dict[str, Callable[[], Contribution]] = {"grouped": lambda: Dropped(self, grouped)}
        keeps = self.bytes_each * len(self.inputs) <= BYTES_TO_KEEP
        if keeps:
            ways["grouped, kept"] = lambda: kept(self, grouped)
        if simple:
            ways["windows"] = lambda: Dropped(self, windows)
            if keeps:
                ways["windows, kept"] = lambda: kept(self, windows)
            if _pixels_pay(self):
                ways["pixels"] = lambda: PixelGram(self)
        kernels = choices.kernels_for(self.inputs)
        if kernels is not None and len(self.kernel) <= _MOST_COMPILED:
            ways["compiled"] = lambda: _Measured(self, _compiled(self, kernels, None))
            if keeps:
                ways["compiled, kept"] = lambda: compiled_rows(self, kernels)
        layout = "" if self.inputs.is_contiguous() else "channels last "
        key = f"convolution {layout}{list(self.inputs.shape[1:])} {list(self.kernel)} {self.geometry.label()}"
        return choices.take(key, ways, self.kernel, self.inputs)


class KernelGradients(Protocol):
    """A way to the records' own kernel gradients."""

    def shape(self, images: Images) -> tuple[int, ...]:
        """The shape in which one record's gradient comes."""
        ...

    def order(self, images: Images) -> tuple[int, ...] | None:
        """The permutation that makes a kernel of it; None if it is one."""
        ...

    def write(self, images: Images, part: slice, out: Tensor) -> None:
        """Write the gradients of some records into `out`."""
        ...


class _Grouped:
    """A convolution in which every record is a group of channels of its own."""

    def shape(self, images: Images) -> tuple[int, ...]:
        return images.kernel

    def order(self, images: Images) -> None:
        return None

    def write(self, images: Images, part: slice, out: Tensor) -> None:
        inputs, gradients = (
            tensor[part].reshape(1, -1, *tensor.shape[2:]) for tensor in (images.inputs, images.gradients)
        )
        records = part.stop - part.start
        kernel = (records * images.kernel[0], *images.kernel[1:])
        groups = records * images.geometry.groups
        out.copy_(images.geometry.kernel_gradient(inputs, gradients, kernel, groups).view_as(out))


grouped = _Grouped()


class _Windows:
    """What the kernel saw at each position, times the gradients at that position."""

    def shape(self, images: Images) -> tuple[int, ...]:
        return (images.kernel[0], *images.kernel[2:], images.kernel[1])

    def order(self, images: Images) -> tuple[int, ...]:
        last = len(images.kernel) - 1
        return (0, last, *range(1, last))

    def write(self, images: Images, part: slice, out: Tensor) -> None:
        padded, geometry = _padded(images, part), images.geometry
        record, *steps, channel = padded.stride()
        gradients = images.gradients[part].flatten(2)
        shape = (len(padded), *images.gradients.shape[2:], *images.kernel[2:], padded.shape[-1])
        moves = [step * stride for step, stride in zip(steps, geometry.stride, strict=True)]
        reaches = [step * dilation for step, dilation in zip(steps, geometry.dilation, strict=True)]
        windows = images.buffers.get("windows", shape, padded)
        windows.copy_(padded.as_strided(shape, (record, *moves, *reaches, channel), padded.storage_offset()))
        seen = windows.view(len(gradients), gradients.shape[2], -1)
        torch.bmm(gradients, seen, out=out.view(len(gradients), gradients.shape[1], -1))


windows = _Windows()


class _Measured(Contribution):
    """Known by its norms; one ordinary kernel gradient of weighted records finishes."""

    def __init__(self, images: Images, squared: Tensor) -> None:
        self._images, self._squared = images, squared

    def squared(self) -> Tensor:
        """Each record's squared norm, [B] in float64."""
        return self._squared

    def rows(self) -> Tensor:
        """Each record's gradient, [B, *shape]."""
        return kept(self._images, grouped).rows()

    def add_weighted(self, weights: Tensor, out: Tensor) -> None:
        """Add the weighted sum to `out`."""
        images = self._images
        scaled = images.gradients * weights.view(-1, *(1,) * (images.gradients.dim() - 1))
        out += images.geometry.kernel_gradient(images.inputs, scaled, images.kernel, images.geometry.groups)


class Dropped(_Measured):
    """The records' gradients are computed in chunks that stay in cache, measured and dropped."""

    def __init__(self, images: Images, way: KernelGradients) -> None:
        super().__init__(images, _write(images, way, None)[0])


class PixelGram(_Measured):
    """The squared norm from the Gram matrices of windows and of output gradients.

    The windows' Gram matrix is the sum, over the kernel's offsets, of shifted Gram matrices of pixels, so
    windows are never made. This pays where there are few positions and many channels.
    """

    def __init__(self, images: Images) -> None:
        padded, buffers = _padded(images, slice(None)), images.buffers
        pixels = padded.flatten(1, -2)
        records, count, _ = pixels.shape
        gram = torch.bmm(
            pixels, pixels.transpose(1, 2), out=buffers.get("pixels", (records, count, count), pixels)
        ).view(records, *padded.shape[1:-1], *padded.shape[1:-1])
        positions = images.gradients.shape[2:]
        seen = buffers.get("window gram", (records, *positions, *positions), pixels).zero_()
        for offsets in product(*(range(length) for length in images.kernel[2:])):
            at = tuple(
                slice(offset * dilation, offset * dilation + stride * (length - 1) + 1, stride)
                for offset, dilation, stride, length in zip(
                    offsets, images.geometry.dilation, images.geometry.stride, positions, strict=True
                )
            )
            seen += gram[(slice(None), *at, *at)]
        gradients = images.gradients.flatten(2)
        total = gradients.shape[2]
        outer = torch.bmm(
            gradients.transpose(1, 2),
            gradients,
            out=buffers.get("right gram", (records, total, total), pixels),
        )
        super().__init__(images, gram_product(seen.view(records, total, total), outer))


class Pointwise(Contribution):
    """A kernel of one pixel is a matrix that acts on each pixel."""

    def __init__(self, images: Images, choices: Choices) -> None:
        inputs = images.inputs
        for dim, stride in enumerate(images.geometry.stride, start=2):
            inputs = inputs.unfold(dim, 1, stride)[..., 0]
        left, right = (tensor.flatten(2).transpose(1, 2) for tensor in (images.gradients, inputs))
        self._matrix = outer_products(left, right, images.buffers, choices, images.use)
        self._kernel = images.kernel

    def squared(self) -> Tensor:
        """Each record's squared norm, [B] in float64."""
        return self._matrix.squared()

    def rows(self) -> Tensor:
        """Each record's gradient, [B, *shape]."""
        return self._matrix.rows().view(-1, *self._kernel)

    def add_weighted(self, weights: Tensor, out: Tensor) -> None:
        """Add the weighted sum to `out`."""
        for _ in self._kernel[2:]:
            out = out[..., 0]
        self._matrix.add_weighted(weights, out)


def kept(images: Images, way: KernelGradients) -> Rows:
    """The records' gradients, kept."""
    squared, rows = _write(images, way, (images.use, "rows"))
    return Rows(rows, squared, way.order(images))


def compiled_rows(images: Images, kernels: Kernels) -> Rows:
    """The records' gradients by the compiled kernels, kept."""
    shape = (len(images.inputs), *windows.shape(images))
    rows = images.buffers.get((images.use, "rows"), shape, images.inputs)
    return Rows(rows, _compiled(images, kernels, rows), windows.order(images))


def _compiled(images: Images, kernels: Kernels, rows: Tensor | None) -> Tensor:
    geometry, moved, fixed = images.geometry, images.inputs, images.gradients
    if geometry.output_padding is not None:
        # A transposed convolution is the backward pass of one that goes from its output to its input.
        moved, fixed = fixed, moved
    return kernels.windows(
        moved,
        fixed,
        images.kernel[2:],
        geometry.stride,
        geometry.padding,
        geometry.dilation,
        groups=geometry.groups,
        out=rows,
    )


def _write(images: Images, way: KernelGradients, name: Hashable | None) -> tuple[Tensor, Tensor]:
    records = len(images.inputs)
    positions = prod(images.gradients.shape[2:])
    working = images.bytes_each // images.kernel[0] * (positions + images.kernel[0])
    step = max(1, BYTES_IN_CACHE // working)
    shape = (records if name else min(step, records), *way.shape(images))
    rows = images.buffers.get(name or "chunk", shape, images.inputs)
    norms = images.inputs.new_empty(records, blocks_of(prod(images.kernel)))
    for start in range(0, records, step):
        part = slice(start, min(start + step, records))
        chunk = rows[part] if name else rows[: part.stop - start]
        way.write(images, part, chunk)
        block_norms(chunk, norms[part])
    return sum_of_blocks(norms), rows


def _padded(images: Images, part: slice) -> Tensor:
    """The inputs of some records with channels last and padding around."""
    last = images.inputs[part].movedim(1, -1)
    padding = images.geometry.padding
    if not any(padding):
        return last.contiguous()
    sizes = [length + 2 * side for length, side in zip(last.shape[1:-1], padding, strict=True)]
    padded = images.buffers.get("padded", (len(last), *sizes, last.shape[-1]), last).zero_()
    inside = (slice(side, side + length) for side, length in zip(padding, last.shape[1:-1], strict=True))
    padded[(slice(None), *inside)] = last
    return padded


def _pixels_pay(images: Images) -> bool:
    geometry, channels, outputs = images.geometry, images.kernel[1], images.kernel[0]
    sizes = zip(images.inputs.shape[2:], geometry.padding, strict=True)
    pixels = prod(length + 2 * padding for length, padding in sizes)
    positions, window = prod(images.gradients.shape[2:]), prod(images.kernel[2:])
    gram = pixels**2 * channels + positions**2 * (2 * window + outputs)
    bytes_of_gram = len(images.inputs) * pixels**2 * images.inputs.element_size()
    return gram < 2 * positions * window * channels * outputs and bytes_of_gram <= _BYTES_OF_GRAM

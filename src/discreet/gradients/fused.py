"""The fused engine: clipped sums from one forward and one backward pass."""

import time
from collections.abc import Mapping

import torch
from torch import Tensor

from discreet.gradients.axes import RecordAxis, find_axis
from discreet.gradients.batches import Batch, batch_size, map_batch, rows_of, signature, synthetic_like
from discreet.gradients.buffers import Buffers
from discreet.gradients.choosing import Choices
from discreet.gradients.clipping import FlatClipping
from discreet.gradients.layout import FlatLayout
from discreet.gradients.losses import RecordLoss
from discreet.gradients.native import Kernels
from discreet.gradients.rules import RULES
from discreet.gradients.slots import Slots, UnsupportedError
from discreet.gradients.tape import Tape
from discreet.gradients.weighing import Weighing

_FORMATS = ("contiguous", "channels last")
_ROUNDS = 4
_MOST_RECORDS_FORWARD = 256


class FusedSums:
    """Clipped sums by rules, one for each kind of layer.

    Args:
        losses: The model and its loss.
        layout: The model's flat layout.
        choices: The ways that an earlier engine chose.
        kernels: The compiled kernels, if they are to be used.
    """

    def __init__(
        self, losses: RecordLoss, layout: FlatLayout, choices: Mapping[str, str], kernels: Kernels | None
    ) -> None:
        self._losses, self._layout = losses, layout
        self._buffers, self.choices = Buffers(), Choices(choices, kernels)
        self._axes: dict[str, list[RecordAxis]] = {}

    def prepare(self, inputs: Batch, targets: Batch, size: int) -> None:
        """Find out, on `size` made-up records, how the model works on batches of this signature.

        Raises:
            UnsupportedError: The model cannot be treated exactly; says why.
        """
        key = signature(inputs, targets)
        if key in self._axes:
            return
        axes, has_images = self._survey(inputs, targets)
        self._axes[key] = axes
        generator = torch.Generator().manual_seed(0)
        made_up = synthetic_like(inputs, size, generator), synthetic_like(targets, size, generator)
        try:
            self._choose(key, made_up, _FORMATS if has_images else _FORMATS[:1])
        except UnsupportedError:
            del self._axes[key]
            raise

    def _choose(self, key: str, made_up: tuple[Batch, Batch], formats: tuple[str, ...]) -> None:
        """Time the ways of each layer within each memory format, then the formats."""
        entry = f"format {key}"
        chosen = self.choices.chosen.get(entry)
        formats = formats if chosen not in formats else (chosen,)
        seconds = dict.fromkeys(formats, float("inf"))
        for name in formats:
            self.choices.chosen[entry] = name
            self.choices.timing = True
            try:
                self._run(*made_up)
            finally:
                self.choices.timing = False
        for _ in range(_ROUNDS if len(formats) > 1 else 0):
            # In turns: what else the machine does then falls on all alike.
            for name in formats:
                self.choices.chosen[entry] = name
                seconds[name] = min(seconds[name], self._seconds(*made_up))
        self.choices.chosen[entry] = min(seconds, key=lambda name: seconds[name])
        # Ways that were tried and not taken have left memory behind.
        self._buffers.clear()

    def _seconds(self, inputs: Batch, targets: Batch) -> float:
        weighing = Weighing.of(FlatClipping(clip_norm=1.0), self._layout)
        start = time.perf_counter()
        self.add_clipped_sum(inputs, targets, weighing, self._layout.zeros())
        return time.perf_counter() - start

    def add_clipped_sum(
        self, inputs: Batch, targets: Batch, weighing: Weighing, out: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Add the batch's clipped sum to the flat `out`; the norms [B, G] and losses [B] of the records."""
        tape, losses = self._run(inputs, targets)
        with torch.no_grad():
            norms, weights = weighing.weigh(tape.squared(len(losses), weighing))
            sound = norms.isfinite().all(dim=1)
            if bool(sound.all()):
                tape.add_weighted(weights, weighing, out)
                return norms, losses
        # A zero weight does not make a NaN vanish, so records that are not sound must not be in the sum at
        # all.
        if bool(sound.any()):
            self.add_clipped_sum(rows_of(inputs, sound), rows_of(targets, sound), weighing, out)
        return norms, losses

    def formatted(self, inputs: Batch, targets: Batch) -> tuple[Batch, Batch]:
        """The batch in the memory format that is the fastest for forward passes alone."""
        entry = f"forward {signature(inputs, targets)}"
        if entry not in self.choices.chosen:
            self.choices.chosen[entry] = self._fastest_forward(inputs, targets)
        return _in_format(self.choices.chosen[entry], inputs), targets

    def _fastest_forward(self, inputs: Batch, targets: Batch) -> str:
        """Time forward passes of made-up records in each format; not always the one that gradients are best in."""
        generator = torch.Generator().manual_seed(0)
        size = min(batch_size(inputs, targets), _MOST_RECORDS_FORWARD)
        made_up, targets = synthetic_like(inputs, size, generator), synthetic_like(targets, size, generator)
        batches = {name: _in_format(name, made_up) for name in _FORMATS}
        seconds = dict.fromkeys(_FORMATS, float("inf"))
        with torch.no_grad():
            for _ in range(_ROUNDS):
                for name, batch in batches.items():
                    start = time.perf_counter()
                    self._losses(batch, targets)
                    seconds[name] = min(seconds[name], time.perf_counter() - start)
        return min(seconds, key=lambda name: seconds[name])

    def _run(self, inputs: Batch, targets: Batch) -> tuple[Tape, Tensor]:
        key = signature(inputs, targets)
        tape = self._tape(self._axes[key], self.choices.chosen[f"format {key}"])
        with torch.enable_grad():
            with tape:
                losses = self._losses(inputs, targets)
            with tape.guarded():
                if losses.requires_grad:
                    torch.autograd.backward(losses, torch.ones_like(losses))
        return tape, losses.detach()

    def _tape(self, axes: list[RecordAxis] | None, memory_format: str) -> Tape:
        slots, channels_last = Slots(self._losses.model, self._layout), memory_format == "channels last"
        return Tape(slots, RULES, axes, self._buffers, self.choices, channels_last=channels_last)

    def _survey(self, inputs: Batch, targets: Batch) -> tuple[list[RecordAxis], bool]:
        """The record axes of all watched outputs, and whether there are images among the layers' inputs."""
        seen = []
        for records in (2, 3):
            generator = torch.Generator().manual_seed(records)
            tape = self._tape(None, _FORMATS[0])
            made_up = synthetic_like(inputs, records, generator), synthetic_like(targets, records, generator)
            with torch.enable_grad(), tape:
                losses = self._losses(*made_up)
            seen.append(tape.outputs)
        has_images = tape.has_images
        two, three = seen
        if [what for what, _ in two] != [what for what, _ in three]:
            raise UnsupportedError("the forward pass does not do the same for every batch")
        outputs = [output for _, output in three]
        with torch.enable_grad():
            gradients = [_gradients(loss, outputs) for loss in losses]
        axes = [
            find_axis(what, first.shape, second.shape, [by_record[number] for by_record in gradients])
            for number, ((what, first), (_, second)) in enumerate(zip(two, three, strict=True))
        ]
        return axes, has_images


def _in_format(name: str, inputs: Batch) -> Batch:
    return map_batch(_channels_last, inputs) if name == "channels last" else inputs


def _channels_last(tensor: Tensor) -> Tensor:
    # `contiguous` would leave the strides of images with one channel as they are, and with them the slower way.
    return tensor.to(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor


def _gradients(loss: Tensor, outputs: list[Tensor]) -> tuple[Tensor | None, ...]:
    if not loss.requires_grad:
        return (None,) * len(outputs)
    found = torch.autograd.grad(loss, outputs, retain_graph=True, allow_unused=True)
    # Some layers use the memory of their gradients again.
    return tuple(None if gradient is None else gradient.clone() for gradient in found)

"""The gradient engine: model, loss, batch and clipping rule in; clipped sum of per-record gradients out."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from discreet.errors import UserError
from discreet.gradients.batches import Batch, batch_size, rows_of, signature, synthetic_like
from discreet.gradients.choosing import NO_KERNELS
from discreet.gradients.clipping import ClippingRule, FlatClipping
from discreet.gradients.functional import LoopedGradients, VectorizedGradients
from discreet.gradients.fused import FusedSums
from discreet.gradients.inspect import probe_independence, refuse_mixing_modules, refuse_random_modules
from discreet.gradients.layout import FlatLayout
from discreet.gradients.losses import Loss, RecordLoss
from discreet.gradients.memory import activation_bytes
from discreet.gradients.native import kernels
from discreet.gradients.private import Private
from discreet.gradients.slots import UnsupportedError
from discreet.gradients.weighing import Weighing

Method = Literal["auto", "fused", "functional", "loop"]

_METHODS = ("auto", "fused", "functional", "loop")

# Ways are timed on so many records and bytes at most, so that setting up stays short.
_MOST_RECORDS_TO_TIME = 256
_MOST_BYTES_TO_TIME = 2**26
# Larger microbatches are no faster, and take more memory.
_MOST_RECORDS_AT_ONCE = 1024


class ClippedSums(Protocol):
    """A way to clipped sums of per-record gradients."""

    def add_clipped_sum(
        self, inputs: Batch, targets: Batch, weighing: Weighing, out: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Add the batch's clipped sum to the flat `out`; the norms [B, G] and losses [B] of the records."""
        ...


@dataclass(frozen=True, kw_only=True)
class ClipReport:
    """What a clipped sum was made of; for mechanisms that noise it, not for people.

    Attributes:
        norms: Each record's gradient norms by group, [B, G] float64, rounded up; infinite where not finite.
        losses: Each record's loss, [B].
        not_finite: The number of records whose gradient was not finite; they contributed exactly zero.
    """

    norms: Private[Tensor]
    losses: Private[Tensor]
    not_finite: Private[int]


class GradientEngine:
    """Clipped sums of per-record gradients of one model.

    **Guarantee**: for a rule with sensitivity C, adding or removing one record changes the sum that
    `clipped_sum` writes by at most C in L2 norm, up to the rounding of the sum itself, whatever the record.
    It assumes that a record's loss does not depend on other records, which is enforced for known layers and
    probed for all others.

    Where several processes share the work, each sums its own records; the sums are added, once, before noise is
    added, once. The sensitivity of the whole sum is the rule's.

    A model that draws random numbers in its forward pass (dropout) is refused: known layers by name, others by
    what they do to torch's generator.

    Args:
        model: The network; in training mode unless the caller chose otherwise. Its parameters are read at
            each call.
        loss: Maps (outputs, targets) to one loss per record, shape [B].
        layout: The model's flat layout.
        microbatch: Records that are processed at once; by default as many as `memory_limit` allows.
        memory_limit: Bytes that activations and gradients of one microbatch may take, roughly.
        method: "fused" (one forward and one backward pass, by a rule for each kind of layer), "functional"
            (torch.func, any module), "loop" (one record at a time), or "auto": fused where that is exact,
            which is found out at the first batch, else functional, and the loop where torch.func fails;
            announced once.
        autocast: The type, such as torch.bfloat16, to which forward passes are autocast. Norms, clipping and
            sums stay in the parameters' type, whatever context the caller is in.
        views: With augmentation multiplicity, the number of views of each record; see `RecordLoss`.
        choices: What an earlier engine of the same model chose (its `choices`), so that a resumed run
            computes bit for bit what the first would have.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        layout: FlatLayout,
        *,
        microbatch: int | None = None,
        memory_limit: int = 2**30,
        method: Method = "auto",
        views: int | None = None,
        autocast: torch.dtype | None = None,
        choices: Mapping[str, Any] | None = None,
    ) -> None:
        if microbatch is not None and microbatch < 1:
            raise ValueError(f"microbatch must be at least 1, got {microbatch}")
        if memory_limit < 1:
            raise ValueError(f"memory_limit must be a positive number of bytes, got {memory_limit}")
        if method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(_METHODS)}, got {method!r}")
        refuse_mixing_modules(model)
        self._losses, self._layout = RecordLoss(model, loss, views, autocast), layout
        self._microbatch, self._memory_limit, self._method = microbatch, memory_limit, method
        choices = choices or {}
        self._microbatches: dict[str, int] = dict(choices.get("microbatch", {}))
        self._methods: dict[str, str] = dict(choices.get("method", {}))
        self._prepared: set[str] = set()
        self._announced: set[str] = set()
        # A run that began without compiled kernels goes on without them.
        useful = layout.device.type == "cpu" and method in ("auto", "fused")
        compiled = kernels() if useful and choices.get("kernels") != NO_KERNELS else None
        self._fused = FusedSums(self._losses, layout, choices.get("ways", {}), compiled)
        self._sums: dict[str, ClippedSums] = {
            "fused": self._fused,
            "functional": VectorizedGradients(self._losses, layout),
            "loop": LoopedGradients(self._losses, layout),
        }

    @property
    def layout(self) -> FlatLayout:
        """The layout of the sums."""
        return self._layout

    @property
    def choices(self) -> dict[str, Any]:
        """What was chosen for the batches seen so far, fit for JSON; depends on shapes only."""
        return {
            "method": dict(self._methods),
            "microbatch": dict(self._microbatches),
            "ways": dict(self._fused.choices.chosen),
            "kernels": self._fused.choices.kernels,
        }

    def clipped_sum(self, inputs: Batch, targets: Batch, rule: ClippingRule, out: Tensor) -> ClipReport:
        """Write the clipped sum (not mean) of the records' gradients into the flat `out`.

        Args:
            inputs: A tensor, or a tuple or dictionary of tensors, with records along dimension 0.
            targets: The same for the loss.
            rule: The clipping rule.
            out: A flat vector of the layout, in the parameters' type; overwritten.
        """
        self._layout.check(out)
        if out.dtype != self._layout.dtype:
            raise ValueError(f"out must have the parameters' type {self._layout.dtype}, got {out.dtype}")
        refuse_random_modules(self._losses.model)
        weighing = Weighing.of(rule, self._layout)
        size = batch_size(inputs, targets)
        out.zero_()
        if size == 0:
            return self._report(*self._empty(weighing))
        full_precision = torch.autocast(self._layout.device.type, enabled=False)
        with full_precision:
            self._prepare(inputs, targets)
            try:
                return self._report(*self._sum(inputs, targets, weighing, out))
            except UnsupportedError as error:
                raise UserError(f"{error}: use method='functional'") from error

    def losses(self, inputs: Batch, targets: Batch) -> Private[Tensor]:
        """The losses [B] of the records at the model's present weights, without gradients."""
        size = batch_size(inputs, targets)
        refuse_random_modules(self._losses.model)
        if size == 0:
            return Private(torch.zeros(0, dtype=self._layout.dtype, device=self._layout.device))
        found = []
        with torch.no_grad(), torch.autocast(self._layout.device.type, enabled=False):
            self._prepare(inputs, targets)
            for part in _parts(size, self._microbatches[signature(inputs, targets)]):
                chunk = rows_of(inputs, part), rows_of(targets, part)
                found.append(self._losses(*self._fused.formatted(*chunk)))
        return Private(torch.cat(found))

    def _sum(self, inputs: Batch, targets: Batch, weighing: Weighing, out: Tensor) -> tuple[Tensor, Tensor]:
        size = batch_size(inputs, targets)
        key = signature(inputs, targets)
        step, sums = self._microbatches[key], self._sums[self._methods[key]]
        if size <= step:
            return sums.add_clipped_sum(inputs, targets, weighing, out)
        total = torch.zeros_like(out, dtype=torch.float64)
        norms, losses = [], []
        for part in _parts(size, step):
            out.zero_()
            chunk = rows_of(inputs, part), rows_of(targets, part)
            part_norms, part_losses = sums.add_clipped_sum(*chunk, weighing, out)
            total += out
            norms.append(part_norms)
            losses.append(part_losses)
        out.copy_(total)
        return torch.cat(norms), torch.cat(losses)

    def _prepare(self, inputs: Batch, targets: Batch) -> None:
        key = signature(inputs, targets)
        if key in self._prepared:
            return
        with torch.random.fork_rng(devices=[]):
            probe_independence(self._losses, inputs, targets)
            each = activation_bytes(self._losses, inputs, targets)
            self._methods[key] = self._choose_method(
                key, inputs, targets, min(self._memory_limit, _MOST_BYTES_TO_TIME) // each
            )
            if self._microbatch is not None:
                self._microbatches[key] = self._microbatch
            elif key not in self._microbatches:
                if self._methods[key] != "fused":
                    # A record's own gradient, and once more while it is reduced.
                    each += 2 * self._layout.size * self._layout.dtype.itemsize
                self._microbatches[key] = max(1, min(self._memory_limit // each, _MOST_RECORDS_AT_ONCE))
        self._prepared.add(key)

    def _choose_method(self, key: str, inputs: Batch, targets: Batch, most: int) -> str:
        asked = self._methods.get(key, self._method)
        if asked in ("auto", "fused"):
            size = max(1, min(batch_size(inputs, targets), self._microbatch or most, _MOST_RECORDS_TO_TIME))
            try:
                self._fused.prepare(inputs, targets, size)
            except UnsupportedError as error:
                if self._method == "fused":
                    raise UserError(f"the fused engine cannot treat this model exactly: {error}") from error
                self._announce("functional", f"per-record gradients by torch.func, which is slower: {error}")
            else:
                return "fused"
        if asked != "loop":
            try:
                self._try_functional(inputs, targets)
            except (RuntimeError, ValueError) as error:
                if self._method == "functional":
                    raise UserError(f"torch.func cannot treat this model: {error}") from error
                self._announce("loop", f"per-record gradients one by one, which is slow: {error}")
            else:
                return "functional"
        return "loop"

    def _try_functional(self, inputs: Batch, targets: Batch) -> None:
        generator = torch.Generator().manual_seed(0)
        made_up = synthetic_like(inputs, 2, generator), synthetic_like(targets, 2, generator)
        weighing = Weighing.of(FlatClipping(clip_norm=1.0), self._layout)
        self._sums["functional"].add_clipped_sum(*made_up, weighing, self._layout.zeros())

    def _announce(self, method: str, message: str) -> None:
        if method not in self._announced:
            self._announced.add(method)
            warnings.warn(message, stacklevel=6)

    def _empty(self, weighing: Weighing) -> tuple[Tensor, Tensor]:
        device = self._layout.device
        norms = torch.zeros(0, weighing.group_count, dtype=torch.float64, device=device)
        return norms, torch.zeros(0, dtype=self._layout.dtype, device=device)

    @staticmethod
    def _report(norms: Tensor, losses: Tensor) -> ClipReport:
        not_finite = int((~norms.isfinite().all(dim=1)).sum())
        return ClipReport(norms=Private(norms), losses=Private(losses), not_finite=Private(not_finite))


def _parts(size: int, most: int) -> Iterator[slice]:
    """Slices of nearly equal length, none longer than `most`."""
    count = -(-size // most)
    bounds = [size * number // count for number in range(count + 1)]
    return (slice(*pair) for pair in pairwise(bounds))

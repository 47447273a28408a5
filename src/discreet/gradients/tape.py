"""One forward and one backward pass, watched: what each use of a parameter contributes for each record.

The tape sees every torch function that the model calls. One that takes a trainable parameter is handed to the
rule for that function, which computes the output without telling autograd about the parameter and leaves word
of what to do with the output's gradient. So autograd computes no parameter gradients, and each rule obtains
the per-record ones in the cheapest way it knows.

Nothing can slip by: a function without a rule is an error, and so is a gradient that autograd does bring to a
parameter (which happens when a parameter is used where torch functions cannot be seen, as in a custom
`torch.autograd.Function` or in compiled code). The engine then falls back to `torch.func`.
"""

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from discreet.gradients.axes import RecordAxis
from discreet.gradients.buffers import Buffers
from discreet.gradients.choosing import Choices
from discreet.gradients.contributions import Contribution, Together
from discreet.gradients.sequences import Positions, joined
from discreet.gradients.slots import Slot, Slots, UnsupportedError
from discreet.gradients.weighing import Weighing

Rule = Callable[..., Any]
Receive = Callable[[Tensor, RecordAxis], Iterable[tuple[Slot, Contribution]]]


class Tape(TorchFunctionMode):
    """Collects contributions while a model runs under it and while its losses are propagated back.

    Args:
        slots: The model's trainable parameters.
        rules: The rule for each torch function: called as `rule(tape, *args, **kwargs)` with the function's
            own arguments.
        axes: The record axis of each watched output, in the order in which the forward pass makes them; None
            while they are being found out.
        buffers: Scratch memory, kept between steps.
        choices: The ways that rules take.
        channels_last: Whether image layers work in that memory format.
    """

    def __init__(
        self,
        slots: Slots,
        rules: Mapping[Any, Rule],
        axes: Sequence[RecordAxis] | None,
        buffers: Buffers,
        choices: Choices,
        *,
        channels_last: bool = False,
    ) -> None:
        super().__init__()
        self.slots, self.rules, self.axes = slots, rules, axes
        self.buffers, self.choices, self.channels_last = buffers, choices, channels_last
        self.outputs: list[tuple[str, Tensor]] = []
        self.uses = 0
        self.has_images = False
        self._expected: dict[str, int] = {}
        self._arrived: dict[str, list[tuple[Slot, Contribution]]] = {}
        self._measured: dict[str, Tensor] = {}
        self._anchor = torch.empty(0, requires_grad=True)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the function, by its rule if it takes a trainable parameter."""
        kwargs = kwargs or {}
        if not torch.is_grad_enabled() or not self._takes_parameter(args, kwargs):
            return func(*args, **kwargs)
        rule = self.rules.get(func)
        if rule is not None:
            return rule(self, *args, **kwargs)
        name = getattr(func, "__name__", str(func))
        opened = _opened(func)
        if opened is not None:
            with self:
                return opened(*args, **kwargs)
        result = func(*args, **kwargs)
        if _reads_parameter_only(func, name, result, self.slots):
            return result
        raise UnsupportedError(f"{name} is applied to a trainable parameter and has no rule")

    def slot(self, parameter: Tensor) -> Slot | None:
        """The parameter's slot if it is trainable."""
        return self.slots.of(parameter) if self.slots.covers(parameter) else None

    def slot_or_none(self, parameter: Tensor | None) -> Slot | None:
        """The same for an optional parameter."""
        return None if parameter is None else self.slot(parameter)

    def plain(self, tensor: Tensor) -> Tensor:
        """The tensor, without autograd's knowledge of it if it is trainable."""
        return tensor.detach() if self.slots.covers(tensor) else tensor

    def plain_or_none(self, tensor: Tensor | None) -> Tensor | None:
        """The same for an optional tensor."""
        return None if tensor is None else self.plain(tensor)

    def in_format(self, images: Tensor) -> Tensor:
        """Images or kernels in the memory format that is used."""
        self.has_images |= images.dim() == 4
        if self.channels_last and images.dim() == 4:
            # `contiguous` would leave a single channel as it is, and the output would not be channels last.
            return images.to(memory_format=torch.channels_last)
        return images

    def remember(self, tensor: Tensor) -> Callable[[], Tensor]:
        """Gives the tensor again in the backward pass, if it has not been changed in place since.

        Under autocast it comes in the parameters' type, like the gradients that meet it.
        """
        kept, version = tensor.detach(), tensor._version
        dtype = self.slots.layout.dtype if tensor.is_floating_point() else tensor.dtype

        def recall() -> Tensor:
            if kept._version != version:
                raise UnsupportedError("the input of a layer is changed in place after the layer has used it")
            return kept.to(dtype)

        return recall

    def watch(self, what: str, output: Tensor, slots: Iterable[Slot | None], receive: Receive) -> Tensor:
        """The output, watched: when its gradient arrives, `receive` is asked for the slots' contributions."""
        number, self.uses = self.uses, self.uses + 1
        for slot in slots:
            if slot is not None:
                self._expected[slot.name] = self._expected.get(slot.name, 0) + 1
        if not output.requires_grad:
            output = _Anchored.apply(self._anchor, output)  # type: ignore[no-untyped-call]
        if self.axes is None:
            self.outputs.append((what, output))
            return output
        if number >= len(self.axes):
            raise UnsupportedError("the forward pass does not do the same for every batch")
        axis = self.axes[number]

        def arrive(gradient: Tensor) -> None:
            with torch.no_grad():
                for slot, contribution in receive(gradient.to(self.slots.layout.dtype), axis):
                    self._arrive(slot, contribution)

        output.register_hook(arrive)  # type: ignore[no-untyped-call]
        return output

    def squared(self, records: int, weighing: Weighing) -> Tensor:
        """Each record's squared norms [B, G], once the losses have been propagated back."""
        device = self.slots.layout.device
        squared = torch.zeros(records, weighing.group_count, dtype=torch.float64, device=device)
        for name in self._arrived:
            if name not in self._measured:
                self._measured[name] = self._together(name).squared()
            squared[:, weighing.group_of(name)] += self._measured[name]
        return squared

    def add_weighted(self, weights: Tensor, weighing: Weighing, out: Tensor) -> None:
        """Add the sum of the records' gradients times their weights [B, G] to the flat `out`."""
        columns = weights.to(out.dtype).t().contiguous()
        for name, parts in self._arrived.items():
            start = self.slots.layout.slices[name].start
            for slot, part in parts:
                part.add_weighted(columns[weighing.group_of(name)], slot.within(out, start))

    def shared(self, slot: Slot) -> bool:
        """Whether the forward pass has used the slot's parameter more than once."""
        return self._expected[slot.name] > 1

    def _together(self, name: str) -> Contribution:
        parts = self._arrived[name]
        positions = [part for slot, part in parts if isinstance(part, Positions) and slot == parts[0][0]]
        if len(positions) < len(parts):
            return Together(parts, self.slots.parameters[name].numel())
        whole = joined(positions, self.buffers, self.choices, name)
        self._arrived[name] = [(parts[0][0], whole)]
        return whole

    def _arrive(self, slot: Slot, contribution: Contribution) -> None:
        self._arrived.setdefault(slot.name, []).append((slot, contribution))
        if not self.shared(slot):
            self._measured[slot.name] = contribution.squared()

    def _takes_parameter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return any(self.slots.covers(tensor) for tensor in _tensors(args)) or any(
            self.slots.covers(tensor) for tensor in _tensors(kwargs.values())
        )

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Within it, a gradient that autograd brings to a trainable parameter is an error."""

        def refuse(_: Tensor) -> None:
            raise UnsupportedError("a trainable parameter is used where torch functions cannot be seen")

        handles = [
            parameter.register_hook(refuse)  # type: ignore[no-untyped-call]
            for parameter in self.slots.parameters.values()
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


class _Anchored(torch.autograd.Function):
    """Gives an output before which there is nothing differentiable a place in the graph."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, output: Tensor) -> Tensor:
        """The output itself."""
        ctx.mark_dirty(output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None]:
        """Nothing: there is nothing before the output."""
        return None, None


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


_NOT_VIEWS = {"detach", "detach_", "requires_grad_"}
_NOT_VIEW_PROPERTIES = tuple(vars(torch._C.TensorBase)[name].__get__ for name in ("data", "grad"))


def _reads_parameter_only(func: Any, name: str, result: Any, slots: Slots) -> bool:
    """Whether the function only looked at a shape or took a view, so that the use is yet to come."""
    if name in _NOT_VIEWS or func in _NOT_VIEW_PROPERTIES:
        return False
    return all(slots.covers(tensor) for tensor in _tensors([result]))


def _opened(func: Any) -> Any:
    """A Python function of torch.nn.functional that shows the tape what it calls; None for other functions.

    The originals hand themselves over as a whole while a tape is active; the copy does not ask.
    """
    if not isinstance(func, types.FunctionType) or func.__module__ != "torch.nn.functional":
        return None
    blind = dict.fromkeys(
        ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"), lambda *_: False
    )
    opened = types.FunctionType(
        func.__code__, {**func.__globals__, **blind}, func.__name__, func.__defaults__, func.__closure__
    )
    opened.__kwdefaults__ = func.__kwdefaults__
    return opened

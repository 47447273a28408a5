"""Batches: a tensor, or a tuple or dictionary of tensors, with records along dimension 0."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

Batch: TypeAlias = Tensor | tuple[Tensor, ...] | Mapping[str, Tensor]


def rows_of(batch: Batch, rows: slice | Tensor) -> Batch:
    """The records at these rows."""
    return map_batch(lambda tensor: tensor[rows], batch)


def map_batch(function: Callable[[Tensor], Tensor], batch: Batch) -> Batch:
    """The batch with the function applied to each of its tensors."""
    if isinstance(batch, Tensor):
        return function(batch)
    if isinstance(batch, Mapping):
        return {name: function(tensor) for name, tensor in batch.items()}
    return tuple(function(tensor) for tensor in batch)


def tensors_of(batch: Batch) -> list[Tensor]:
    """The batch's tensors in order."""
    if isinstance(batch, Tensor):
        return [batch]
    found = list(batch.values()) if isinstance(batch, Mapping) else list(batch)
    for tensor in found:
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"a batch must hold tensors with records along dimension 0, found {type(tensor).__name__}"
            )
    return found


def record_of(batch: Batch, index: int) -> Batch:
    """One record, without the record dimension."""
    return map_batch(lambda tensor: tensor[index], batch)


def batch_size(inputs: Batch, targets: Batch) -> int:
    """The number of records, on which all tensors must agree."""
    sizes = {
        tensor.shape[0] if tensor.dim() else None for part in (inputs, targets) for tensor in tensors_of(part)
    }
    if len(sizes) != 1 or None in sizes:
        raise ValueError("inputs and targets must agree on their number of records (dimension 0)")
    (size,) = sizes
    assert size is not None
    return size


def call_model(model: nn.Module, inputs: Batch, parameters: dict[str, Tensor] | None = None) -> Any:
    """The model's outputs, with its own parameters or with these in their place.

    Tuples are passed as positional, dictionaries as keyword arguments.
    """
    arguments = (
        (inputs,) if isinstance(inputs, Tensor) else () if isinstance(inputs, Mapping) else tuple(inputs)
    )
    named = dict(inputs) if isinstance(inputs, Mapping) else {}
    if parameters is None:
        return model(*arguments, **named)
    return torch.func.functional_call(model, parameters, arguments, named)


def signature(inputs: Batch, targets: Batch) -> str:
    """The records' shapes and types: two batches with the same signature differ in size and values only."""
    tensors = tensors_of(inputs) + tensors_of(targets)
    return " ".join(
        f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape[1:])}" for tensor in tensors
    )


def synthetic_like(batch: Batch, size: int, generator: torch.Generator) -> Batch:
    """A batch of `size` made-up records shaped like those of `batch`, whose values are not looked at.

    Integers are 0 or 1, which are valid tokens and labels nearly everywhere; truth values are True, since a
    mask without a single True leads to undefined outputs in attention.
    """

    def one(tensor: Tensor) -> Tensor:
        shape = (size, *tensor.shape[1:])
        if tensor.is_floating_point():
            return torch.randn(shape, generator=generator, dtype=torch.float64).to(tensor)
        if tensor.dtype == torch.bool:
            return torch.ones(shape, dtype=torch.bool, device=tensor.device)
        return torch.randint(0, 2, shape, generator=generator).to(tensor)

    return map_batch(one, batch)

"""Which part of which trainable parameter a tensor in the forward pass is."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from discreet.gradients.layout import FlatLayout


class UnsupportedError(Exception):
    """The fused engine cannot treat this model exactly; says which operation is in the way."""


@dataclass(frozen=True)
class Slot:
    """A strided view of one parameter, as seen from the start of that parameter.

    Attributes:
        name: The parameter.
        shape: The view's shape.
        stride: Its strides.
        offset: Its first element within the parameter.
    """

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    def within(self, flat: Tensor, start: int) -> Tensor:
        """The same view of a flat vector in which the parameter begins at `start`."""
        return flat.as_strided(self.shape, self.stride, flat.storage_offset() + start + self.offset)

    def within_rows(self, rows: Tensor) -> Tensor:
        """The same view of each row of a contiguous [B, size of the parameter]."""
        stride = (rows.stride(0), *self.stride)
        return rows.as_strided((rows.shape[0], *self.shape), stride, rows.storage_offset() + self.offset)

    def elements(self, size: int) -> set[int]:
        """The parameter's elements that the view covers."""
        return set(self.within(torch.arange(size), 0).flatten().tolist())


class Slots:
    """Finds the slot of a tensor by the memory that it shares with a trainable parameter."""

    def __init__(self, model: nn.Module, layout: FlatLayout) -> None:
        self.layout = layout
        self.parameters = layout.parameters(model)
        self._by_storage: dict[int, list[tuple[int, str]]] = {}
        for name, parameter in self.parameters.items():
            if not parameter.is_contiguous():
                raise UnsupportedError(f"the parameter {name} is not contiguous in memory")
            held = self._by_storage.setdefault(parameter.untyped_storage().data_ptr(), [])
            held.append((int(parameter.storage_offset()), name))

    def covers(self, tensor: Tensor) -> bool:
        """Whether the tensor shares memory with a trainable parameter."""
        return tensor.untyped_storage().data_ptr() in self._by_storage and self._owner(tensor) is not None

    def of(self, tensor: Tensor) -> Slot:
        """The slot of a tensor for which `covers` holds."""
        owner = self._owner(tensor)
        assert owner is not None
        start, name = owner
        shape, stride = tuple(tensor.shape), tuple(tensor.stride())
        if any(step == 0 and length > 1 for length, step in zip(shape, stride, strict=True)):
            raise UnsupportedError(f"the parameter {name} is expanded along a dimension")
        return Slot(name=name, shape=shape, stride=stride, offset=int(tensor.storage_offset()) - start)

    def _owner(self, tensor: Tensor) -> tuple[int, str] | None:
        offset = int(tensor.storage_offset())
        for start, name in self._by_storage[tensor.untyped_storage().data_ptr()]:
            if start <= offset < start + max(1, self.parameters[name].numel()):
                return start, name
        return None

"""The flat vector of a model's trainable parameters."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

import torch
from torch import Tensor, nn

from discreet.errors import UserError


def trainable_parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The parameters that require gradients, in the model's order, tied ones once under their first name."""
    return ((name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad)


def module_of(name: str) -> str:
    """The name of the module that a parameter belongs to."""
    return name.rpartition(".")[0]


@dataclass(frozen=True, kw_only=True)
class FlatLayout:
    """Where each trainable parameter of a model lies in one flat vector.

    Tied parameters appear once, under the first name that the model gives them; frozen ones do not appear.

    Attributes:
        names: The parameters' names in the order of the flat vector.
        shapes: Their shapes.
        dtype: Their common floating-point type.
        device: Their common device.
    """

    names: tuple[str, ...]
    shapes: tuple[torch.Size, ...]
    dtype: torch.dtype
    device: torch.device
    slices: dict[str, slice] = field(init=False, repr=False, compare=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        slices, offset = {}, 0
        for name, shape in zip(self.names, self.shapes, strict=True):
            slices[name] = slice(offset, offset + prod(shape))
            offset += prod(shape)
        object.__setattr__(self, "slices", slices)
        object.__setattr__(self, "size", offset)

    @classmethod
    def of(cls, model: nn.Module) -> "FlatLayout":
        """The layout of a model's trainable parameters."""
        named = list(trainable_parameters(model))
        if not named:
            raise UserError(f"{type(model).__name__} has no trainable parameters: nothing to train")
        names, parameters = zip(*named, strict=True)
        for kind in ("dtype", "device"):
            found = sorted({str(getattr(parameter, kind)) for parameter in parameters})
            if len(found) > 1:
                raise UserError(f"the trainable parameters must share one {kind}, found {', '.join(found)}")
        if not parameters[0].is_floating_point():
            raise UserError(
                f"the trainable parameters must be real floating point, found {parameters[0].dtype}"
            )
        return cls(
            names=names,
            shapes=tuple(parameter.shape for parameter in parameters),
            dtype=parameters[0].dtype,
            device=parameters[0].device,
        )

    def zeros(self) -> Tensor:
        """A flat vector of zeros."""
        return torch.zeros(self.size, dtype=self.dtype, device=self.device)

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Each parameter's part of a flat vector, in the parameter's shape and sharing its memory."""
        self.check(flat)
        shapes = zip(self.names, self.shapes, strict=True)
        return {name: flat[self.slices[name]].view(shape) for name, shape in shapes}

    def flatten(self, model: nn.Module) -> Tensor:
        """A copy of the model's trainable parameters as one flat vector."""
        return torch.cat([parameter.detach().flatten() for parameter in self.parameters(model).values()])

    def bind(self, model: nn.Module, flat: Tensor) -> None:
        """Make the model's trainable parameters views into `flat`, whose values they take."""
        views = self.views(flat)
        for name, parameter in self.parameters(model).items():
            parameter.data = views[name]

    def parameters(self, model: nn.Module) -> dict[str, nn.Parameter]:
        """The model's trainable parameters by name, if they are exactly those of this layout."""
        named = dict(trainable_parameters(model))
        found = [(name, parameter.shape) for name, parameter in named.items()]
        if found != list(zip(self.names, self.shapes, strict=True)):
            raise ValueError("the model's trainable parameters are not those of this layout")
        return named

    def check(self, flat: Tensor) -> None:
        """Refuse a tensor that is not a flat vector of this layout."""
        if flat.shape != (self.size,):
            raise ValueError(f"expected a flat vector of shape ({self.size},), got {tuple(flat.shape)}")

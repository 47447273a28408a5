"""Activations that keep values bounded, which suits clipped gradients."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TemperedSigmoid(nn.Module):
    """scale * sigmoid(temperature * x) - offset (Papernot et al., AAAI 2021, s, T, o); (2, 2, 1) is tanh."""

    def __init__(self, scale: float = 2.0, temperature: float = 2.0, offset: float = 1.0) -> None:
        super().__init__()
        self.scale = scale
        self.temperature = temperature
        self.offset = offset

    def forward(self, inputs: Tensor) -> Tensor:
        """The activation, element by element."""
        return self.scale * torch.sigmoid(self.temperature * inputs) - self.offset

    def extra_repr(self) -> str:
        """The constants, for the printed form."""
        return f"scale={self.scale}, temperature={self.temperature}, offset={self.offset}"


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "elu": nn.ELU,
    "tempered-sigmoid": TemperedSigmoid,
}


def activation(name: str) -> nn.Module:
    """A new activation by name; "tempered-sigmoid" with other constants is written tempered-sigmoid:s,T,o."""
    plain, _, constants = name.partition(":")
    if plain not in ACTIVATIONS or (constants and plain != "tempered-sigmoid"):
        raise ValueError(f"activation is {name!r}; it must be one of {', '.join(ACTIVATIONS)}")
    if not constants:
        return ACTIVATIONS[plain]()
    try:
        scale, temperature, offset = (float(part) for part in constants.split(","))
    except ValueError as error:
        raise ValueError(f"activation is {name!r}; write tempered-sigmoid:2,2,1 for s, T, o") from error
    return TemperedSigmoid(scale, temperature, offset)

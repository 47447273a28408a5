"""Models by name, rebuildable from a name, a shape and options that fit into JSON."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from discreet.errors import UserError

if TYPE_CHECKING:
    from torch import nn

Option = bool | int | float | str
Builder = Callable[..., "nn.Module"]

_MODULES = {
    "linear": "dense",
    "mlp": "dense",
    "cnn-mnist": "convolutional",
    "cnn-cifar": "convolutional",
    "cnn-scatter": "convolutional",
    "resnet18-gn": "residual",
    "wrn-16-4": "residual",
    "lstm-imdb": "recurrent",
    "bow-imdb": "text",
    "transformer-small": "text",
}


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """All that is needed to build a network again, before its parameters are loaded.

    Attributes:
        name: A name of `names()`.
        input_shape: Shape of one record's input.
        classes: Number of outputs.
        options: Options of that network that differ from their defaults.
    """

    name: str
    input_shape: tuple[int, ...]
    classes: int
    options: Mapping[str, Option] = field(default_factory=dict, hash=False)

    def build(self) -> nn.Module:
        """A new network with freshly drawn parameters."""
        return build(self.name, self.input_shape, self.classes, **self.options)

    def as_json(self) -> dict[str, Any]:
        """A dictionary that `json.dumps` takes."""
        return {
            "name": self.name,
            "input_shape": list(self.input_shape),
            "classes": self.classes,
            "options": dict(self.options),
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> ModelSpec:
        """The spec that `as_json` wrote."""
        return cls(
            name=form["name"],
            input_shape=tuple(form["input_shape"]),
            classes=form["classes"],
            options=dict(form["options"]),
        )


def names() -> tuple[str, ...]:
    """All names that `build` takes."""
    return tuple(_MODULES)


def build(name: str, input_shape: tuple[int, ...], classes: int, **options: Option) -> nn.Module:
    """The network called `name` with freshly drawn parameters.

    Args:
        name: One of `names()`.
        input_shape: Shape of one record's input, without the batch.
        classes: Number of outputs.
        **options: Options of that network; `options(name)` lists them with their defaults.

    Raises:
        UserError: Unknown name or option, an option of the wrong type, or a shape it cannot take.
    """
    known = options_of(name)
    for option, value in options.items():
        if option not in known:
            listed = ", ".join(f"{key}={default!r}" for key, default in known.items()) or "none"
            raise UserError(f"model {name} has no option {option!r}; its options are {listed}")
        if not _fits(value, known[option]):
            wanted = type(known[option]).__name__
            raise UserError(f"model {name}: option {option} is {value!r}; it must be of type {wanted}")
    try:
        return _builder(name)(tuple(input_shape), classes, **options)
    except ValueError as error:
        raise UserError(f"model {name}: {error}") from error


def options_of(name: str) -> dict[str, Option]:
    """The options of a model with their defaults."""
    parameters = inspect.signature(_builder(name)).parameters.values()
    return {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}


def default_name(input_shape: tuple[int, ...], *, tokens: bool = False) -> str:
    """The model taken for inputs of this shape when none is asked for."""
    if tokens:
        return "bow-imdb"
    if len(input_shape) != 3:
        return "mlp"
    if input_shape == (1, 28, 28):
        return "cnn-mnist"
    if input_shape[0] in (81, 243):
        return "cnn-scatter"
    return "cnn-cifar" if min(input_shape[1:]) >= 8 else "mlp"


def _builder(name: str) -> Builder:
    if name not in _MODULES:
        raise UserError(f"there is no model named {name!r}; there are {', '.join(_MODULES)}")
    from importlib import import_module

    builder: Builder = getattr(import_module(f"discreet.models.{_MODULES[name]}"), name.replace("-", "_"))
    return builder


def _fits(value: Option, default: Option) -> bool:
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    return isinstance(value, int | float) if isinstance(default, float) else isinstance(value, type(default))

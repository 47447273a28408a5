"""Settings that come from files and command lines, held to the types that their dataclass declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from discreet.errors import UserError

_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    NoneType: "nothing",
    dict: "a table",
    Mapping: "a table",
}


def require_types(settings: Any) -> None:
    """Refuse a dataclass instance of which a field is not of its declared type; say which, and what would be right."""
    for name, value, right in misfits(settings):
        raise UserError(f"{name} is {value!r}; it has to be {right}")


def misfits(settings: Any) -> Iterator[tuple[str, Any, str]]:
    """The fields that are not of their declared types: name, value, and what would be right, in words."""
    hints = get_type_hints(type(settings))
    for field in fields(settings):
        value, declared = getattr(settings, field.name), hints[field.name]
        if not _fits(value, declared):
            yield field.name, value, _in_words(declared)


def _fits(value: Any, declared: Any) -> bool:
    kind, inner = get_origin(declared), get_args(declared)
    if declared is Any:
        return True
    if kind in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if kind is tuple:
        each = inner[:1] * len(value) if inner[1:] == (...,) and isinstance(value, tuple) else inner
        return (
            isinstance(value, tuple)
            and len(value) == len(each)
            and all(_fits(part, wanted) for part, wanted in zip(value, each, strict=True))
        )
    if declared is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if declared is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind or declared)


def _in_words(declared: Any) -> str:
    kind, inner = get_origin(declared), get_args(declared)
    if kind in (Union, UnionType):
        return " or ".join(dict.fromkeys(_in_words(each) for each in inner if each is not NoneType))
    if kind is tuple:
        return f"{len(inner)} values, each {_in_words(inner[0])}" if inner[1:] != (...,) else "a list"
    return _WORDS.get(kind or declared, getattr(declared, "__name__", str(declared)))

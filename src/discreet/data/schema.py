"""The public schema of a table: which columns there are and what they can hold, said by a person.

Bounds, categories and classes are facts about the world that somebody vouches for. Nothing here looks at
a table.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from discreet.errors import UserError

Unknown = Literal["other", "refuse"]
Missing = Literal["refuse", "encode"]


@dataclass(frozen=True, kw_only=True)
class Numeric:
    """A column of numbers, scaled so that `bounds` become -1 and 1; what lies outside is clamped."""

    bounds: tuple[float, float]

    def __post_init__(self) -> None:
        if len(self.bounds) != 2:
            raise ValueError(f"bounds is {list(self.bounds)}; write [least, greatest], from public knowledge")
        least, greatest = self.bounds
        if not (math.isfinite(least) and math.isfinite(greatest) and least < greatest):
            raise ValueError(f"bounds is [{least}, {greatest}]; they must be finite and ascending")


@dataclass(frozen=True, kw_only=True)
class Categorical:
    """A column of categories, one-hot in the order given; `unknown` "other" adds a slot for all else."""

    categories: tuple[str, ...]
    unknown: Unknown = "other"

    def __post_init__(self) -> None:
        if not self.categories:
            raise ValueError("categories is empty; list what the column can hold, from public knowledge")
        if len(set(self.categories)) != len(self.categories):
            raise ValueError("categories names one category twice")
        if self.unknown not in get_args(Unknown):
            raise ValueError(f"unknown is {self.unknown!r}; it must be one of {', '.join(get_args(Unknown))}")


@dataclass(frozen=True, kw_only=True)
class Ignored:
    """A column that is left out."""


Column = Numeric | Categorical | Ignored


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """What a table holds.

    **Guarantee.** Encoding a row by a schema is a function of that row alone, so neighbouring tables stay
    neighbours. That holds only if the schema was written without looking at the private rows.

    Attributes:
        target: Name of the column with the class.
        classes: Its possible values, in the order of the labels.
        columns: All other columns.
        missing: "refuse" stops at an empty field; "encode" puts a number in the middle of its bounds and adds
            an indicator feature to every numeric column, and takes an empty category for an unknown one.
        missing_values: Fields that stand for nothing.
    """

    target: str
    classes: tuple[str, ...]
    columns: Mapping[str, Column] = field(hash=False)
    missing: Missing = "refuse"
    missing_values: tuple[str, ...] = ("",)

    def __post_init__(self) -> None:
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            raise ValueError(
                f"classes is {list(self.classes)}; list at least two different values of the target"
            )
        if self.target in self.columns:
            raise ValueError(f"column {self.target!r} is the target and cannot be an input as well")
        if all(isinstance(column, Ignored) for column in self.columns.values()):
            raise ValueError("columns leaves no input; describe at least one numeric or categorical column")
        if self.missing not in get_args(Missing):
            raise ValueError(f"missing is {self.missing!r}; it must be one of {', '.join(get_args(Missing))}")

    @property
    def features(self) -> int:
        """Number of inputs that a row becomes."""
        return sum(self.width(column) for column in self.columns.values())

    def width(self, column: Column) -> int:
        """Number of inputs that a field of this column becomes."""
        if isinstance(column, Numeric):
            return 2 if self.missing == "encode" else 1
        if isinstance(column, Categorical):
            other = column.unknown == "other" or self.missing == "encode"
            return len(column.categories) + int(other)
        return 0

    def as_json(self) -> dict[str, Any]:
        """The schema in plain JSON, as a data set's description keeps it."""
        columns: list[dict[str, Any]] = []
        for name, column in self.columns.items():
            if isinstance(column, Numeric):
                columns.append({"name": name, "kind": "numeric", "bounds": list(column.bounds)})
            elif isinstance(column, Categorical):
                categories = list(column.categories)
                columns.append(
                    {"name": name, "kind": "categorical", "categories": categories, "unknown": column.unknown}
                )
        return {
            "kind": "table",
            "target": self.target,
            "classes": list(self.classes),
            "columns": columns,
            "missing": self.missing,
            "missing_values": list(self.missing_values),
        }


def read_schema(path: Path) -> TableSchema:
    """The schema in a TOML file.

    Raises:
        UserError: The file cannot be read, has a key that a schema does not have, or is not filled in.
    """
    try:
        return parse_schema(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"the schema {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"the schema {path} is no TOML: {error}") from error
    except ValueError as error:
        raise UserError(f"the schema {path}: {error}") from error


def parse_schema(form: Mapping[str, Any]) -> TableSchema:
    """The schema in a parsed TOML document; ValueError says what is wrong in it."""
    _only(form, {"target", "columns", "missing", "missing_values"}, "the schema")
    target = _table(form, "target")
    _only(target, {"column", "classes"}, "[target]")
    columns = {name: _column(name, value) for name, value in _table(form, "columns").items()}
    return TableSchema(
        target=_text(target.get("column"), "column in [target]"),
        classes=_texts(target.get("classes", []), "classes in [target]"),
        columns=columns,
        missing=form.get("missing", "refuse"),
        missing_values=_texts(form.get("missing_values", [""]), "missing_values"),
    )


def _column(name: str, form: Any) -> Column:
    if not isinstance(form, Mapping):
        raise ValueError(f"column {name!r} must be a table, [columns.{name}]")
    try:
        match form.get("kind"):
            case "numeric":
                _only(form, {"kind", "bounds"}, f"[columns.{name}]")
                return Numeric(bounds=_numbers(form.get("bounds", [])))
            case "categorical":
                _only(form, {"kind", "categories", "unknown"}, f"[columns.{name}]")
                categories = _texts(form.get("categories", []), "categories")
                return Categorical(categories=categories, unknown=form.get("unknown", "other"))
            case "ignore":
                return Ignored()
            case other:
                raise ValueError(f'kind is {other!r}; write "numeric", "categorical" or "ignore"')
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from error


def _table(form: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    if not isinstance(form.get(key), Mapping):
        raise ValueError(f"there is no table [{key}]")
    table: Mapping[str, Any] = form[key]
    return table


def _only(form: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in form:
        if key not in known:
            raise ValueError(f"{where} has {key!r}, which is none of {', '.join(sorted(known))}")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{where} is {value!r}; it must be a text")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    """Texts of a list; whole numbers may be written without quotes, as in classes = [0, 1]."""
    if not isinstance(value, list) or any(type(each) not in (str, int) for each in value):
        raise ValueError(f"{where} is {value!r}; it must be a list of texts")
    return tuple(str(each) for each in value)


def _numbers(value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2 or not all(_is_number(each) for each in value):
        raise ValueError(f"bounds is {value!r}; write [least, greatest], from public knowledge")
    return float(value[0]), float(value[1])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

"""A schema for a person to fill in: the columns are named, what they can hold is left open."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from discreet.data.raw_table import header
from discreet.errors import UserError

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
OPENING = """\
# What the columns of {name} can hold. Fill this in from public knowledge: a form, a code book, the law,
# common sense. What is written here becomes public, so do not compute it from the private rows.
# kind = "numeric"      bounds = [least, greatest]
# kind = "categorical"  categories = ["a", "b"]   unknown = "other" (a slot of its own) or "refuse"
# kind = "ignore"       leaves the column out
"""


def schema_template(path: Path, *, target: str | None = None) -> str:
    """A TOML schema for a table with every bound, category and class left open.

    Only the column names are read, and of Parquet files the types that stand beside them. A template does not
    pass as a schema before it is filled in.
    """
    kinds = column_kinds(path)
    if target is not None and target not in kinds:
        raise UserError(f"{path} has no column {target!r}; it has {', '.join(kinds)}")
    lines = [
        OPENING.format(name=path.name),
        'missing = "refuse"            # or "encode": an indicator for numbers, a slot for categories',
        'missing_values = [""]         # fields that stand for nothing',
        "",
        "[target]",
        f"column = {json.dumps(target or '')}",
        "classes = []                  # list them in the order of the labels",
    ]
    for name, kind in kinds.items():
        if name == target:
            continue
        lines += ["", f"[columns.{_key(name)}]"]
        if kind == "numeric":
            lines += ['kind = "numeric"', "bounds = []                   # [least, greatest]"]
        elif kind == "categorical":
            lines += ['kind = "categorical"', 'categories = []               # ["a", "b"]']
        else:
            lines += [
                'kind = ""                     # numeric, categorical or ignore; then bounds or categories'
            ]
    return "\n".join(lines) + "\n"


def column_kinds(path: Path) -> dict[str, str]:
    """The names of the columns with the kind that their declared type suggests, or nothing."""
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    if path.suffix != ".parquet":
        return dict.fromkeys(header(path, delimiter="\t" if ".tsv" in path.suffixes else ","), "")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        declared = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} cannot be read as Parquet: {error}") from error
    return {field.name: _suggested(field.type) for field in declared}


def _suggested(declared: Any) -> str:
    import pyarrow as pa

    if pa.types.is_integer(declared) or pa.types.is_floating(declared) or pa.types.is_decimal(declared):
        return "numeric"
    if pa.types.is_string(declared) or pa.types.is_boolean(declared) or pa.types.is_dictionary(declared):
        return "categorical"
    return ""


def _key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else json.dumps(name)

"""Tables of numbers and categories, read from CSV or Parquet and encoded by a public schema."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from discreet.data.description import Description
from discreet.data.raw_table import RawTable, read_table, trimmed
from discreet.data.records import Records
from discreet.data.schema import Categorical, Numeric, TableSchema, read_schema
from discreet.data.template import column_kinds
from discreet.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def load_table(
    path: Path,
    schema: TableSchema | Path | None,
    *,
    target: str | None = None,
    name: str | None = None,
    size_is_public: bool = False,
) -> Records:
    """The records of a CSV or Parquet file.

    Args:
        path: A file ending in .csv, .csv.gz, .tsv or .parquet.
        schema: The public schema, or the TOML file that holds it.
        target: The column with the class; with a schema it need not be repeated, and must agree if it is.
        name: What to call the data set; the file's name if left out.
        size_is_public: Declares that the number of rows may be published.

    Raises:
        UserError: No schema (the message then says how to get a template for one), or the table does not agree with it.
    """
    if schema is None:
        raise UserError(_wanted(path, target))
    if isinstance(schema, Path):
        schema = read_schema(schema)
    if target is not None and target != schema.target:
        raise UserError(f"the target is {target!r}, but the schema says {schema.target!r}")
    return encode(read_table(path), schema, name=name or path.name, size_is_public=size_is_public)


def _wanted(path: Path, target: str | None) -> str:
    """How to come by a schema; only the column names are looked at."""
    there = column_kinds(path)
    if target is not None and target not in there:
        return f"{path} has no column {target!r}; it has {', '.join(there)}"
    column, template = target or "COLUMN", f"{path.name.partition('.')[0]}.toml"
    return (
        f"{path} needs a schema that says what its columns can hold; that is never read off private records. Write a "
        f"template with `discreet data schema {quote(str(path))} --target {quote(column)} --output {quote(template)}`, "
        "fill it in from public knowledge, and give it with --schema"
    )


def from_frame(
    frame: Any, schema: TableSchema, *, name: str = "table", size_is_public: bool = False
) -> Records:
    """The records of a pandas or polars data frame, an Arrow table, or a mapping of columns."""
    import pyarrow as pa

    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UserError(f"{name}: this is no table that Arrow can take: {error}") from error
    columns = {column: table.column(column).combine_chunks() for column in table.column_names}
    return encode(RawTable(name, columns), schema, name=name, size_is_public=size_is_public)


def encode(table: RawTable, schema: TableSchema, *, name: str, size_is_public: bool = False) -> Records:
    """Rows as numbers: numeric columns in [-1, 1], categorical ones one-hot, each row by the schema alone."""
    import numpy as np
    import torch

    _agree(table, schema)
    features: list[NDArray[np.float32]] = []
    for column_name, column in schema.columns.items():
        read = _Field(table, column_name, schema)
        if isinstance(column, Numeric):
            features.append(_encode_numbers(read, column, schema))
        elif isinstance(column, Categorical):
            features.append(_encode_categories(read, column, schema))
    target = _Field(table, schema.target, schema)
    target.refuse(target.missing, "the class is missing; drop the row")
    labels = target.positions(schema.classes)
    target.refuse(labels < 0, f"the class is none of {', '.join(schema.classes)}")
    description = Description(
        name=name,
        classes=len(schema.classes),
        class_names=schema.classes,
        input_shape=(schema.features,),
        schema=schema.as_json(),
        size_is_public=size_is_public,
        public_facts=("columns, bounds, categories and classes, as the schema declares them",),
    )
    inputs = torch.from_numpy(np.concatenate(features, axis=1))
    return Records(inputs, torch.from_numpy(labels), description)


class _Field:
    """One column of a table on its way to numbers."""

    def __init__(self, table: RawTable, name: str, schema: TableSchema) -> None:
        self._source = table.source
        self._name = name
        self._values = table.columns[name]
        self.missing = _missing(self._values, schema.missing_values)

    def refuse(self, bad: NDArray[np.bool_], problem: str) -> None:
        """Stops at the first bad row, if there is one."""
        if bad.any():
            row = int(bad.argmax())
            value = self._values[row].as_py()
            raise UserError(f"{self._source}, row {row + 1}, column {self._name!r}: {value!r}: {problem}")

    def numbers(self) -> NDArray[np.float64]:
        """The column as float64, 0 where a value is missing."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        present = pc.if_else(pa.array(~self.missing), trimmed(self._values), None)
        try:
            numbers = pc.cast(present, pa.float64())
        except pa.ArrowException:
            unreadable = np.array(
                [value is not None and not _is_number(value) for value in present.to_pylist()]
            )
            self.refuse(unreadable, "this is no number")
            raise UserError(
                f"{self._source}: column {self._name!r} is of type {self._values.type}, which is not numeric"
            ) from None
        result: NDArray[np.float64] = pc.fill_null(numbers, 0.0).to_numpy(zero_copy_only=False)
        self.refuse(~np.isfinite(result), "this is not finite")
        return result

    def positions(self, values: Sequence[str]) -> NDArray[np.int64]:
        """Where each value of the column stands in `values`, -1 where it does not."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        found = pc.index_in(trimmed(self._values), value_set=pa.array(list(values), pa.string()))
        positions: NDArray[np.int64] = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        positions[self.missing] = -1
        return positions


def _encode_numbers(read: _Field, column: Numeric, schema: TableSchema) -> NDArray[np.float32]:
    import numpy as np

    if schema.missing == "refuse":
        read.refuse(
            read.missing, 'the value is missing; fill it in, or write missing = "encode" in the schema'
        )
    least, greatest = column.bounds
    scaled = np.clip((read.numbers() - least) / (greatest - least) * 2.0 - 1.0, -1.0, 1.0)
    if schema.missing == "refuse":
        return scaled.astype(np.float32)[:, None]
    return np.stack([np.where(read.missing, 0.0, scaled), read.missing], axis=1).astype(np.float32)


def _encode_categories(read: _Field, column: Categorical, schema: TableSchema) -> NDArray[np.float32]:
    import numpy as np

    positions = read.positions(column.categories)
    if schema.missing == "refuse":
        read.refuse(
            read.missing, 'the value is missing; fill it in, or write missing = "encode" in the schema'
        )
    if column.unknown == "refuse":
        read.refuse((positions < 0) & ~read.missing, f"this is none of {', '.join(column.categories)}")
    width = schema.width(column)
    # An unknown category is at place -1, which is the last slot.
    return np.eye(width, dtype=np.float32)[positions]


def _agree(table: RawTable, schema: TableSchema) -> None:
    there = ", ".join(table.columns)
    for name in (schema.target, *schema.columns):
        if name not in table.columns:
            raise UserError(f"{table.source} has no column {name!r}; it has {there}")
    for name in table.columns:
        if name != schema.target and name not in schema.columns:
            raise UserError(
                f"{table.source} has a column {name!r} that the schema does not describe; "
                f'add [columns.{name}] with its kind, kind = "ignore" to leave it out'
            )
    if not len(table.columns[schema.target]):
        raise UserError(f"{table.source} has no rows")


def _missing(values: Any, missing_values: tuple[str, ...]) -> NDArray[np.bool_]:
    import pyarrow as pa
    import pyarrow.compute as pc

    absent = pc.is_in(trimmed(values), value_set=pa.array(list(missing_values), pa.string()))
    absent = pc.or_(absent, pc.is_null(values, nan_is_null=pa.types.is_floating(values.type)))
    result: NDArray[np.bool_] = absent.to_numpy(zero_copy_only=False)
    return result


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True

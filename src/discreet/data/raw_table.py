"""The columns of CSV and Parquet files as they stand there, nothing interpreted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import UserError


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns as they stand in a file, nothing interpreted: Arrow arrays by name.

    Rows are counted from 1 in messages; a header is not counted.
    """

    source: str
    columns: Mapping[str, Any]

    def with_replaced(self, name: str, spelling: Mapping[str, str]) -> RawTable:
        """The same table with some values of one text column spelt otherwise."""
        import pyarrow as pa

        values = [spelling.get(value, value) for value in trimmed(self.columns[name]).to_pylist()]
        return RawTable(self.source, {**self.columns, name: pa.array(values, pa.string())})


def read_table(path: Path) -> RawTable:
    """The columns of a CSV or Parquet file."""
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    if path.suffix == ".parquet":
        return _read_parquet(path)
    if {".csv", ".tsv"} & set(path.suffixes):
        return read_csv(path, delimiter="\t" if ".tsv" in path.suffixes else ",")
    raise UserError(f"{path} ends neither in .csv, .csv.gz, .tsv nor in .parquet")


def read_csv(
    path: Path, *, delimiter: str = ",", column_names: Sequence[str] = (), skip_lines: int = 0
) -> RawTable:
    """A delimited file, plain or gzipped, all fields as text; the first line names columns unless given."""
    import pyarrow as pa
    from pyarrow import csv

    names = list(column_names) or header(path, delimiter=delimiter)
    try:
        read = csv.read_csv(
            str(path),
            read_options=csv.ReadOptions(
                column_names=names, skip_rows=skip_lines + (0 if column_names else 1)
            ),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} cannot be read as a table: {error}") from error
    return RawTable(str(path), {name: read.column(name).combine_chunks() for name in names})


def header(path: Path, *, delimiter: str = ",") -> list[str]:
    """The column names in the first line of a delimited file."""
    import csv
    import gzip

    try:
        with (
            gzip.open(path, "rt", encoding="utf-8-sig")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8-sig", newline="") as file
        ):
            names = [name.strip() for name in next(csv.reader(file, delimiter=delimiter), [])]
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    if not names:
        raise UserError(f"{path} is empty")
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise UserError(f"{path} has two columns named {doubled!r}")
    return names


def trimmed(values: Any) -> Any:
    """The values as texts without blanks around them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return pc.utf8_trim_whitespace(pc.cast(values, pa.string()))


def _read_parquet(path: Path) -> RawTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        read = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} cannot be read as Parquet: {error}") from error
    return RawTable(str(path), {name: read.column(name).combine_chunks() for name in read.column_names})

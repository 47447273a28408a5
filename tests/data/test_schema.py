"""Schema files."""

from pathlib import Path

import pytest

from discreet.data.schema import Categorical, Ignored, Numeric, TableSchema, parse_schema, read_schema
from discreet.errors import UserError

TEXT = """
missing = "encode"
missing_values = ["", "?"]

[target]
column = "ill"
classes = [0, 1]

[columns.age]
kind = "numeric"
bounds = [0, 100]

[columns.job]
kind = "categorical"
categories = ["nurse", "baker"]
unknown = "refuse"

[columns.id]
kind = "ignore"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "schema.toml"
    path.write_text(TEXT)
    return path


def test_a_schema_file_says_what_a_schema_says(file: Path) -> None:
    schema = read_schema(file)
    assert schema == TableSchema(
        target="ill",
        classes=("0", "1"),
        missing="encode",
        missing_values=("", "?"),
        columns={
            "age": Numeric(bounds=(0, 100)),
            "job": Categorical(categories=("nurse", "baker"), unknown="refuse"),
            "id": Ignored(),
        },
    )
    assert schema.features == 2 + 3


def test_the_order_of_columns_is_part_of_the_schema(file: Path) -> None:
    columns = dict(reversed(read_schema(file).columns.items()))
    turned = TableSchema(**{**vars(read_schema(file)), "columns": columns})
    assert turned.as_json() != read_schema(file).as_json()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("bounds = [0, 100]", "", r"column 'age': bounds is \[\]"),
        ("bounds = [0, 100]", "bounds = []", r"column 'age': bounds is \[\]"),
        ("bounds = [0, 100]", "bounds = [100, 0]", "column 'age': .* ascending"),
        ("bounds = [0, 100]", "bounds = [0, inf]", "column 'age': .* finite"),
        ("bounds = [0, 100]", 'bounds = ["0", "9"]', "column 'age': bounds is"),
        ("bounds = [0, 100]", "bounds = [0, 100]\nbond = 1", r"\[columns.age\] has 'bond'"),
        ('categories = ["nurse", "baker"]', "categories = []", "column 'job': categories is empty"),
        ('"baker"', '"nurse"', "column 'job': categories names one category twice"),
        ('unknown = "refuse"', 'unknown = "drop"', "column 'job': unknown is 'drop'"),
        ('kind = "numeric"', 'kind = "number"', "column 'age': kind is 'number'"),
        ("classes = [0, 1]", "classes = [0]", "at least two different"),
        ("classes = [0, 1]", "classes = [true, false]", "must be a list of texts"),
        ('column = "ill"', 'column = ""', r"column in \[target\] is ''"),
        ('column = "ill"', 'column = "age"', "'age' is the target"),
        ('missing = "encode"', 'missing = "guess"', "missing is 'guess'"),
        ('missing = "encode"', "mising = 1", "the schema has 'mising'"),
        ("[target]", "[aim]", "the schema has 'aim'"),
        ("[target]", "[target", "is no TOML"),
    ],
)
def test_what_is_wrong_in_a_schema_is_named(file: Path, old: str, new: str, problem: str) -> None:
    assert old in TEXT
    file.write_text(TEXT.replace(old, new))
    with pytest.raises(UserError, match=problem):
        read_schema(file)


def test_a_schema_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_schema(tmp_path / "none.toml")


def test_a_schema_needs_columns_to_learn_from() -> None:
    with pytest.raises(ValueError, match=r"no table \[columns\]"):
        parse_schema({"target": {"column": "y", "classes": ["a", "b"]}})
    with pytest.raises(ValueError, match="leaves no input"):
        TableSchema(target="y", classes=("a", "b"), columns={"x": Ignored()})

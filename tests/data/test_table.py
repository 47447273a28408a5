"""Tables by a public schema."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.raw_table import RawTable
from discreet.data.schema import Categorical, Ignored, Numeric, TableSchema, read_schema
from discreet.data.table import encode, from_frame, load_table
from discreet.data.template import schema_template
from discreet.errors import UserError

SCHEMA = TableSchema(
    target="ill",
    classes=("no", "yes"),
    columns={
        "age": Numeric(bounds=(0, 100)),
        "job": Categorical(categories=("nurse", "baker")),
        "id": Ignored(),
    },
)
CSV = "id,age,job,ill\n7,50, nurse ,no\n8,75,baker,yes\n9,130,pilot,no\n"
ROWS = [[0.0, 1.0, 0.0, 0.0], [0.5, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]]
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "people.csv"
        path.write_text(text)
        return path

    return write


def with_changes(**changes: object) -> TableSchema:
    return TableSchema(**{**vars(SCHEMA), **changes})  # type: ignore[arg-type]


def test_rows_become_scaled_numbers_and_one_hot_categories_with_a_slot_for_others(write: Write) -> None:
    records = load_table(write(CSV), SCHEMA)
    assert records.inputs.tolist() == ROWS
    assert records.targets.tolist() == [0, 1, 0]
    assert records.description.class_names == ("no", "yes")
    assert records.description.private_facts == ()


def test_csv_gzipped_tsv_parquet_and_frames_give_the_same(write: Write, tmp_path: Path) -> None:

    table = pa.table(
        {
            "id": [7, 8, 9],
            "age": [50, 75, 130],
            "job": ["nurse", "baker", "pilot"],
            "ill": ["no", "yes", "no"],
        }
    )
    pq.write_table(table, tmp_path / "people.parquet")
    (tmp_path / "people.tsv").write_text(CSV.replace(",", "\t"))
    (tmp_path / "people.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    for name in ("people.parquet", "people.tsv", "people.csv.gz"):
        assert load_table(tmp_path / name, SCHEMA).inputs.tolist() == ROWS
    assert from_frame(table, SCHEMA).inputs.tolist() == ROWS
    assert from_frame(table.to_pydict(), SCHEMA).inputs.tolist() == ROWS


def test_whole_numbers_serve_as_categories_and_classes() -> None:
    schema = TableSchema(
        target="y", classes=("0", "1"), columns={"ward": Categorical(categories=("3", "4"), unknown="refuse")}
    )
    records = from_frame({"ward": [4, 3], "y": [1, 0]}, schema)
    assert records.inputs.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert records.targets.tolist() == [1, 0]


def test_missing_values_can_be_encoded(write: Write) -> None:
    text = "id,age,job,ill\n1,,nurse,no\n2,75,?,yes\n"
    records = load_table(write(text), with_changes(missing="encode", missing_values=("", "?")))
    assert records.inputs.tolist() == [[0.0, 1.0, 1.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0, 1.0]]


def test_a_number_that_is_not_a_number_is_missing_in_typed_columns() -> None:
    frame = {"id": [1, 2], "age": [float("nan"), 75.0], "job": ["nurse", None], "ill": ["no", "yes"]}
    records = from_frame(frame, with_changes(missing="encode"))
    assert records.inputs.tolist() == [[0.0, 1.0, 1.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0, 1.0]]
    with pytest.raises(UserError, match="row 1, column 'age'"):
        from_frame(frame, SCHEMA)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id,age,ill\n1,5,no\n", r"has no column 'job'; it has id, age, ill"),
        ("id,age,job,extra,ill\n1,5,nurse,x,no\n", r"a column 'extra' that the schema does not describe"),
        ("id,age,age,job,ill\n1,5,5,nurse,no\n", "two columns named 'age'"),
        ("id,age,job,ill\n1,5,nurse,no\n2,,baker,yes\n", r"row 2, column 'age': '': the value is missing"),
        ("id,age,job,ill\n1,5,nurse,no\n2,6,,yes\n", r"row 2, column 'job': '': the value is missing"),
        ("id,age,job,ill\n1,5,nurse,no\n2,old,baker,yes\n", r"row 2, column 'age': 'old': this is no number"),
        (
            "id,age,job,ill\n1,5,nurse,no\n2,inf,baker,yes\n",
            "column 'age': 'inf': this is not finite",
        ),
        (
            "id,age,job,ill\n1,5,nurse,no\n2,6,baker,maybe\n",
            "column 'ill': 'maybe': .* none of no, yes",
        ),
        ("id,age,job,ill\n1,5,nurse,\n", r"row 1, column 'ill': '': the class is missing"),
        ("id,age,job,ill\n1,5,nurse\n", "cannot be read as a table"),
        ("id,age,job,ill\n", "has no rows"),
        ("", "is empty"),
    ],
)
def test_bad_tables_get_one_message_with_row_and_column(write: Write, text: str, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        load_table(write(text), SCHEMA)


def test_unknown_categories_can_be_refused(write: Write) -> None:
    strict = {**SCHEMA.columns, "job": Categorical(categories=("nurse", "baker"), unknown="refuse")}
    with pytest.raises(UserError, match="row 3, column 'job': 'pilot': this is none of nurse, baker"):
        load_table(write(CSV), with_changes(columns=strict))


def test_a_column_of_dates_is_no_number() -> None:
    frame = pa.table({"id": [1], "age": pa.array([1], pa.timestamp("s")), "job": ["nurse"], "ill": ["no"]})
    with pytest.raises(UserError, match="column 'age'"):
        from_frame(frame, SCHEMA)


@pytest.mark.parametrize("name", ["people.xlsx", "missing.csv"])
def test_files_that_are_no_tables_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "people.xlsx").write_bytes(b"PK")
    with pytest.raises(UserError):
        load_table(tmp_path / name, SCHEMA)


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(UserError, match="cannot be read as Parquet"):
        load_table(tmp_path / "a.parquet", SCHEMA)


def test_another_target_than_the_schemas_is_refused(write: Write) -> None:
    with pytest.raises(UserError, match="the target is 'job', but the schema says 'ill'"):
        load_table(write(CSV), SCHEMA, target="job")


def test_without_a_schema_one_line_says_how_to_get_one_and_nothing_of_the_rows(write: Write) -> None:
    path = write(CSV)
    with pytest.raises(UserError) as refusal:
        load_table(path, None, target="ill")
    message = str(refusal.value)
    assert f"discreet data schema {path} --target ill" in message
    assert "\n" not in message
    assert not any(value in message for value in ("nurse", "pilot", "130", "yes"))


def test_without_a_schema_an_unknown_target_is_named_at_once(write: Write) -> None:
    with pytest.raises(UserError, match="has no column 'sick'; it has"):
        load_table(write(CSV), None, target="sick")


def test_a_template_passes_as_a_schema_only_when_it_is_filled_in(write: Write, tmp_path: Path) -> None:
    template = schema_template(write(CSV), target="ill")
    path = tmp_path / "schema.toml"
    path.write_text(template)
    with pytest.raises(UserError, match=r"column 'id': kind is ''"):
        read_schema(path)
    filled = template.replace("classes = []", 'classes = ["no", "yes"]')
    for kind in (
        '"ignore"',
        '"numeric"\nbounds = [0, 100]',
        '"categorical"\ncategories = ["nurse", "baker"]',
    ):
        filled = filled.replace('kind = ""', f"kind = {kind}", 1)
    path.write_text(filled)
    assert read_schema(path) == SCHEMA
    assert load_table(write(CSV), path).inputs.tolist() == ROWS


def test_a_template_of_parquet_takes_kinds_from_the_declared_types(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a b": [1.5], "c": ["x"], "d": [None]}), tmp_path / "t.parquet")
    template = schema_template(tmp_path / "t.parquet")
    assert '[columns."a b"]\nkind = "numeric"' in template
    assert '[columns.c]\nkind = "categorical"' in template
    assert '[columns.d]\nkind = ""' in template


People = list[tuple[float, str]]
jobs = st.sampled_from(["nurse", "baker", "pilot", "clerk"])
people = st.lists(st.tuples(st.floats(-1e6, 1e6), jobs), min_size=2, max_size=6)


def tabled(rows: People) -> RawTable:
    ages, trades = zip(*rows, strict=True)
    columns = {"id": trades, "age": ages, "job": trades, "ill": ["no"] * len(rows)}
    return RawTable("people", {name: pa.array(values) for name, values in columns.items()})


def rows_do_not_see_each_other(encoder: Callable[[RawTable], torch.Tensor], rows: People) -> bool:
    whole = encoder(tabled(rows))
    without_one = (encoder(tabled(rows[:k] + rows[k + 1 :])) for k in range(len(rows)))
    return all(
        torch.equal(rest, torch.cat([whole[:k], whole[k + 1 :]])) for k, rest in enumerate(without_one)
    )


@settings(max_examples=30, deadline=None)
@given(people)
def test_taking_one_row_away_leaves_the_other_rows_as_they_were(rows: People) -> None:
    assert rows_do_not_see_each_other(lambda table: encode(table, SCHEMA, name="people").inputs, rows)


def test_bounds_read_off_the_rows_are_found_out() -> None:
    def by_own_bounds(table: RawTable) -> torch.Tensor:
        ages = table.columns["age"].to_numpy()
        own = {**SCHEMA.columns, "age": Numeric(bounds=(float(ages.min()) - 1, float(ages.max()) + 1))}
        return encode(table, with_changes(columns=own), name="people").inputs

    assert not rows_do_not_see_each_other(by_own_bounds, [(1.0, "nurse"), (50.0, "baker"), (99.0, "pilot")])

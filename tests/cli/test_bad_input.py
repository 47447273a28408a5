"""Every mistake gets one line and exit code 2; nothing is written and nothing charged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Discreet = Callable[..., Any]

X = np.random.default_rng(0).normal(size=(120, 5)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)


def refused(answer: Any, *told: str, folder: str = "out") -> None:
    """The command's answer is one line that says `told`, and it left nothing behind."""
    assert answer.code == 2, answer
    assert answer.err.startswith("discreet")
    assert answer.err.count("\n") == 1, answer.err
    for each in told:
        assert each in answer.err
    assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"row4": "3,23,,yes"}, "row 4, column 'job'"),
        ({"row4": "3,,nurse,yes"}, "row 4, column 'age'"),
        ({"row4": "3,inf,nurse,yes"}, "row 4, column 'age': 'inf': this is not finite"),
        ({"row4": "3,old,nurse,yes"}, "row 4, column 'age': 'old': this is no number"),
        ({"row4": "3,23,nurse,maybe"}, "row 4, column 'ill': 'maybe': the class is none of no, yes"),
    ],
)
def test_bad_fields_of_a_table(
    discreet: Discreet, patients: Callable[..., str], changed: dict[str, str], told: str
) -> None:
    refused(discreet(patients(**changed)), told)


@pytest.mark.parametrize(
    ("first", "last", "options", "told"),
    [
        (1, 120, "--target sick", "the target is 'sick', but the schema says 'ill'"),
        (25, 39, "", "expected_batch_size is 20 but there are only 15 records"),
        (1, 1, "--expected-batch-size 1", "1 record(s); training needs at least 2"),
        (1, 20, "", "all 20 records have label 0"),
        (1, 0, "", "has no rows"),
        (1, 120, "--schema nowhere.toml", "nowhere.toml"),
        (1, 120, "--public patients.csv", "--declared"),
        (1, 120, "--classes 2", "classes has no meaning for a table"),
    ],
)
def test_bad_tables(
    discreet: Discreet, patients: Callable[..., str], first: int, last: int, options: str, told: str
) -> None:
    refused(discreet(f"{patients(first, last)} {options}"), told)


def test_a_table_without_a_schema_says_how_to_get_one(
    discreet: Discreet, patients: Callable[..., str]
) -> None:
    patients()
    answer = discreet("train patients.csv --target ill --output out")
    refused(answer, "discreet data schema patients.csv --target ill --output patients.toml")
    command = answer.err.split("`")[1].removeprefix("discreet ")
    assert discreet(command).code == 0
    assert "[columns.age]" in Path("patients.toml").read_text()
    refused(discreet("train patients.csv --schema patients.toml --output out"), "patients.toml")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"inputs": np.where(X > 2, np.nan, X)}, "inputs must be finite numbers"),
        ({"targets": Y - 1}, "record 0 has label -1" if Y[0] == 0 else "has label -1"),
        ({"targets": Y + 0.5}, "labels must be whole numbers"),
        ({"targets": Y * 0}, "all 120 records have label 0"),
        ({"targets": Y[:-1]}, "120 inputs but 119 targets"),
        ({"inputs": X[:0], "targets": Y[:0]}, "there are no records"),
        ({"inputs": None}, "has no array 'inputs'; it has targets: say which are meant"),
        ({"inputs": np.array([{}, {}])}, "cannot be read as .npz of plain numbers"),
        ({"inputs": 3.0}, "single value"),
    ],
)
def test_bad_arrays(
    discreet: Discreet, arrays: Callable[..., str], changed: dict[str, object], told: str
) -> None:
    refused(discreet(arrays(**changed)), told)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--epsilon 0", "epsilon"),
        ("--epsilon -1", "epsilon"),
        ("--epsilon nan", "epsilon is nan"),
        ("--epsilon three", "invalid float value: 'three'"),
        ("--delta 0", "delta"),
        ("--delta 1", "delta"),
        ("--noise-multiplier 0", "noise_multiplier is 0.0"),
        ("--noise-multiplier 0.01", "more than the budget of 3"),
        ("--noise-multiplier nan", "noise_multiplier is nan"),
        ("--clip-norm 0", "clip_norm is 0.0"),
        ("--expected-batch-size 0", "expected_batch_size is 0"),
        ("--expected-batch-size 121", "there are only 120 records"),
        ("--epochs 2", "epochs and releases say the same thing"),
        ("--average 2", "average is 2.0"),
        ("--learning-rate-schedule cosine", "'end'"),
        ("--learning-rate-schedule zigzag", "'zigzag'"),
        ("--set learning_rate_schedule=3", "learning_rate_schedule is 3"),
        ("--set momentum=nan", "momentum is nan"),
        ("--set momentum=-1", "momentum"),
        ("--set momentun=0.9", "momentum was perhaps meant"),
        ("--set settings=1", "no setting 'settings'"),
        ("--set momentum", "is not of the form NAME=VALUE"),
        ("--set accounting=claimed", 'certified ones are "visible" and "hidden"'),
        ("--recipe sgd", "recipe is 'sgd'; there are dp-sgd"),
        ("--recipe dp-optimizer --set torch_optimizer=LBFGS", "LBFGS cannot be used here"),
        ("--model gpt", "there is no model named 'gpt'; there are linear"),
        ("--model cnn-mnist", "cnn-mnist"),
        ("--model-option depht=1", "has no option 'depht'"),
        ("--model-option width=-1", "width=-1"),
        ("--model-option width=0", "one of its layers is empty"),
        ("--set model_options=3", "model_options is 3; it is a table"),
        ("--device abacus", "device 'abacus' cannot be used here"),
        ("--threads 0", "threads is 0"),
        ("--microbatch 0", "microbatch is 0"),
        ("--marks 0", "marks is 0"),
        ("--checkpoint-seconds -1", "checkpoint_seconds is -1.0"),
        ("--checkpoint-seconds inf", "checkpoint_seconds is inf"),
        ("--schema a.toml", "schema has no meaning for an npz file"),
        ("--image-size 8", "image_size has no meaning"),
        ("--data-folder .", "data_folder is for the named data sets"),
        ("--declared public", "no public records are given"),
        ("--public nowhere.npz --declared public", "there is no file nowhere.npz"),
        ("--classes 1", "at least 2"),
        ("--classes a,a", "names one class twice"),
        ("--classes a,", "with commas between"),
        ("--inputs x", "has no array 'x'"),
        ("--config nowhere.toml", "nowhere.toml does not exist"),
        ("--config a.npz", "a.npz is not valid TOML"),
        ("--config .", "cannot be read"),
        ("--resume out", "give it alone"),
    ],
)
def test_bad_settings(discreet: Discreet, arrays: Callable[..., str], options: str, told: str) -> None:
    refused(discreet(f"{arrays()} {options}"), told)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("train", "no data given"),
        ("train nowhere.csv", "neither a file or folder nor one of digits, mnist"),
        ("train mnist --data-folder empty", "discreet data get mnist"),
        ("train digits --classes 10", "classes has no meaning for digits"),
        ("train digits --public a.npz", "comes with evaluation records of its own"),
        ("train --resume nowhere", "not the folder of a run"),
        ("certificate nowhere", "does not exist"),
        ("recipes sgd", "there are dp-sgd"),
        ("data get moon", "no data set named 'moon'"),
        ("data get digits", "needs no download"),
        ("data schema nowhere.csv --target x", "there is no file nowhere.csv"),
        ("account", "sample rate"),
        ("account --sample-rate 2 --noise-multiplier 1 --releases 9", "sample_rate"),
        ("account --sample-rate 0.1 --noise-multiplier 0 --releases 9", "noise_multiplier"),
        ("account --sample-rate 0.1 --noise-multiplier 1 --releases 0", "releases is 0"),
        ("account --sample-rate 0.1 --noise-multiplier 1 --epochs nan", "nan epochs"),
        ("account --sample-rate 0 --noise-multiplier 1 --epochs 3", "sample rate 0"),
        ("account --sample-rate 0.1 --releases 9 --epsilon 0", "epsilon"),
        ("account --sample-rate 0.1 --noise-multiplier 0.1 --epsilon 0.1", "not even one release"),
        ("account --examples 9 --expected-batch-size 10 --releases 9 --noise-multiplier 1", "9 examples"),
        ("train digits --epsilom 3", "unrecognized arguments: --epsilom"),
        ("dance", "invalid choice: 'dance'"),
    ],
)
def test_bad_commands(
    discreet: Discreet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, told: str
) -> None:
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    refused(discreet(words), told, folder="runs")


def test_an_output_folder_that_exists_is_left_as_it_is(
    discreet: Discreet, arrays: Callable[..., str]
) -> None:
    Path("out").mkdir()
    Path("out/mine").write_text("keep")
    answer = discreet(arrays())
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "out exists already" in answer.err
    assert [each.name for each in Path("out").iterdir()] == ["mine"]


def test_an_output_folder_below_a_file_is_refused(discreet: Discreet, arrays: Callable[..., str]) -> None:
    refused(discreet(arrays().replace("--output out", "--output a.npz/out")), "a.npz/out cannot be made")


def test_a_large_delta_warns_and_goes_on(discreet: Discreet, arrays: Callable[..., str]) -> None:
    answer = discreet(f"{arrays()} --delta 0.01")
    assert answer.code == 0
    assert answer.err.count("\n") == 1
    assert "delta 0.01 is not below 1/n" in answer.err
    assert discreet(f"{arrays()} --delta 0.001 --output other").err == ""


@pytest.mark.parametrize("broken", ["p.parquet", "a.npz", "pictures/cat/1.png"])
def test_files_that_are_not_what_they_are_called(discreet: Discreet, broken: str) -> None:
    for kind in ("cat", "dog"):
        Path("pictures", kind).mkdir(parents=True)
    Path("pictures/dog/1.png").write_bytes(b"nor this")
    Path(broken).write_bytes(b"not this")
    Path("schema.toml").write_text(
        '[target]\ncolumn="a"\nclasses=[0,1]\n[columns.b]\nkind="numeric"\nbounds=[0,1]'
    )
    data = broken.split("/", maxsplit=1)[0]
    options = "--schema schema.toml" if data == "p.parquet" else ""
    refused(discreet(f"train {data} --output out {options}"), broken, "cannot be read")

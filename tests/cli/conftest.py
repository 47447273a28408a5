"""The command line called in this process, and small files to call it on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from discreet.cli import main


class Answer(NamedTuple):
    """What a command came back with."""

    code: int
    out: str
    err: str


Discreet = Callable[..., Answer]


@pytest.fixture
def discreet(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Discreet:
    """Calls a command in an empty folder; words are given one by one, or as one text with blanks between."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*words: str | Path) -> Answer:
        arguments = words[0].split() if len(words) == 1 and isinstance(words[0], str) else map(str, words)
        try:
            code = main(list(arguments))
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


SCHEMA = """
[target]
column = "ill"
classes = ["no", "yes"]
[columns.id]
kind = "ignore"
[columns.age]
kind = "numeric"
bounds = [0, 120]
[columns.job]
kind = "categorical"
categories = ["nurse", "baker"]
"""
ROWS = [
    f"{number},{20 + number % 60},{('nurse', 'baker')[number % 2]},{('no', 'yes')[number % 60 > 30]}"
    for number in range(120)
]


@pytest.fixture
def patients(tmp_path: Path) -> Callable[..., str]:
    """Writes patients.csv, rows `first` to `last` and some of them changed, and its schema.toml; gives the words
    that train on it."""

    def write(first: int = 1, last: int = len(ROWS), **changed: str) -> str:
        rows = ROWS[first - 1 : last]
        rows = [changed.get(f"row{number}", row) for number, row in enumerate(rows, start=1)]
        (tmp_path / "patients.csv").write_text("\n".join(["id,age,job,ill", *rows, ""]))
        (tmp_path / "schema.toml").write_text(SCHEMA)
        return "train patients.csv --schema schema.toml --output out --releases 3 --expected-batch-size 20"

    return write


@pytest.fixture
def arrays(tmp_path: Path) -> Callable[..., str]:
    """Writes a.npz, with some of its arrays replaced; gives the words that train on it."""
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(120, 5)).astype(np.float32)
    targets = (inputs[:, 0] > 0).astype(np.int64)

    def write(**changed: object) -> str:
        held = {"inputs": inputs, "targets": targets, **changed}
        np.savez(tmp_path / "a.npz", **{name: array for name, array in held.items() if array is not None})  # type: ignore[arg-type]
        return "train a.npz --output out --releases 3 --expected-batch-size 20 --no-tensorboard"

    return write

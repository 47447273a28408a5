"""`discreet audit`: from a subject to figures and a page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from discreet.audit import game as game_module

Discreet = Callable[..., Any]

FEW = "--canaries 1500 --set releases=4 --set expected-batch-size=30000 --epsilon 4"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    inputs = np.repeat(draw.standard_normal((100, 3)).astype(np.float32), 2, axis=0)
    path = tmp_path / "pairs.npz"
    np.savez(path, inputs=inputs, targets=np.repeat(np.arange(100) % 2, 2))
    return path


def test_a_recipe_is_audited_by_canaries(discreet: Discreet, tmp_path: Path) -> None:
    answer = discreet(f"audit {FEW}")
    assert answer.code == 0, answer.err
    assert "dp-sgd: the best lower bound is epsilon" in answer.out
    assert "refutes nothing" in answer.out
    written = json.loads((tmp_path / "audits" / "dp-sgd" / "canaries.json").read_text())
    assert 0.0 < written["by_curve"] < written["certified"] <= 4.0
    page = (tmp_path / "audits" / "dp-sgd" / "canaries.html").read_text()
    assert "What was proven" in page


def test_json_is_all_that_is_printed_when_asked_for(discreet: Discreet) -> None:
    record = json.loads(discreet(f"audit {FEW} --json").out)
    assert record["canaries"] == 1500


def test_a_refuted_certificate_gives_another_exit_code(
    discreet: Discreet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(game_module, "refutes", lambda *_, **__: True)
    answer = discreet(f"audit {FEW}")
    assert answer.code == 1
    assert "REFUTED" in answer.out


def test_a_run_is_audited_with_its_own_settings(discreet: Discreet, table: Path) -> None:
    begun = discreet(
        f"train {table} --classes 2 --epsilon 2 --epochs 2 --expected-batch-size 50 --output run --quiet"
    )
    assert begun.code == 0, begun.err
    record = json.loads(discreet("audit run --canaries 600 --json").out)
    assert record["releases"] == 8
    assert record["certified"] == pytest.approx(2.0, rel=0.02)
    refused = discreet("audit run --epsilon 3")
    assert refused.code == 2
    assert "as it was made" in refused.err


def test_a_file_with_settings_is_audited(discreet: Discreet, table: Path, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(
        f'data = "{table}"\nclasses = 2\nepsilon = 2.0\nreleases = 5\nexpected_batch_size = 50\n'
    )
    record = json.loads(discreet("audit job.toml --canaries 600 --json").out)
    assert record["releases"] == 5


def test_an_attack_is_made_and_goes_on_where_it_was(discreet: Discreet, table: Path, tmp_path: Path) -> None:
    words = (
        f"audit {table} --by lira --shadows 4 --control --control-epochs 2 --processes 1 --set classes=2 "
        "--output attack"
    )
    answer = discreet(words)
    assert answer.code == 0, answer.err
    assert "lira online" in answer.out
    assert "model 5/5" in answer.out
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "attack" / "models-halves").glob("*.npz")}
    assert len(kept) == 5
    assert "model" not in discreet(words).out.split("written")[0].split("stopped\n")[1]
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    assert json.loads((tmp_path / "attack" / "lira.json").read_text())["certified_epsilon"] is None


def test_duplicates_are_told_and_written_nowhere(discreet: Discreet, table: Path, tmp_path: Path) -> None:
    before = set(tmp_path.rglob("*"))
    answer = discreet(f"audit {table} --by duplicates --set classes=2")
    assert answer.code == 0, answer.err
    assert "200 of the 200 records occur more than once, as 100 different ones" in answer.out
    assert "--copies 2" in answer.out
    assert set(tmp_path.rglob("*")) == before


def test_an_attack_without_data_is_refused(discreet: Discreet) -> None:
    answer = discreet("audit --by rmia")
    assert answer.code == 2
    assert "name the data" in answer.err

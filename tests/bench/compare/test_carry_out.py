import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from discreet.bench.compare import Study, carry_out, collect, markdown, write
from discreet.bench.compare.places import CELLS, ERROR
from discreet.errors import UserError


@pytest.fixture
def arrays(tmp_path):
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(150, 4)).astype(np.float32)
    path = tmp_path / "a.npz"
    np.savez(path, inputs=inputs, targets=(inputs[:, 0] > 0).astype(np.int64))
    return path


def study(arrays, *, methods=({"recipe": "dp-sgd"},), releases=6, **changes):
    settings = {"classes": "2", "releases": releases, "expected_batch_size": 30, "size_is_public": True}
    settings |= {"public": str(arrays), "declared": "public", "delta": 1e-3}
    record = {"methods": list(methods), "data": [str(arrays)], "epsilons": [4.0], "seeds": [1]}
    return Study.from_json({**record, "settings": settings, **changes})


def test_every_cell_is_carried_out_and_a_failing_one_takes_no_other_with_it(arrays, tmp_path):
    broken = {"recipe": "dp-sgd", "label": "too large", "expected_batch_size": 1000}
    asked = study(arrays, methods=[{"recipe": "dp-sgd"}, broken], seeds=[1, 2])
    assert carry_out(asked, tmp_path / "out") == 2
    rows = collect(asked, tmp_path / "out")
    assert [(row.method, row.seed, row.state) for row in rows] == [
        ("dp-sgd", 1, "done"),
        ("too large", 1, "failed"),
        ("dp-sgd", 2, "done"),
        ("too large", 2, "failed"),
    ]
    done = rows[0]
    assert (done.releases, done.updates, done.accounting, done.delta) == (6, 6, "visible", 1e-3)
    assert 3.0 < done.epsilon_certified <= 4.0 < done.epsilon_claimed + 2.0
    assert 0.0 <= done.accuracy <= 1.0
    assert "there are only 150 records" in rows[1].error
    write(rows, tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / "results.parquet").num_rows == 4
    assert "| too large |" in (tmp_path / "out" / "results.md").read_text()


def test_the_matched_training_costs_the_same_and_has_no_memory(arrays, tmp_path):
    method = {"recipe": "sma-dp-sgd", "fresh_weight": 0.5, "clipping": "flat", "matched": True}
    asked = study(arrays, methods=[method])
    assert carry_out(asked, tmp_path / "out") == 0
    remembering, plain = collect(asked, tmp_path / "out")
    assert (remembering.recipe, plain.recipe) == ("sma-dp-sgd", "dp-sgd")
    assert plain.epsilon_certified == pytest.approx(remembering.epsilon_certified, rel=1e-9)
    assert plain.releases == remembering.releases
    plans = [
        json.loads((tmp_path / "out" / CELLS / row.folder / "run.json").read_text())["plan"]
        for row in (remembering, plain)
    ]
    assert plans[1]["noise"]["multiplier"] == pytest.approx(plans[0]["noise"]["multiplier"] / 0.5)
    assert plans[1]["memory"] is None


def test_a_cell_that_says_a_great_deal_does_not_wait_for_a_listener(arrays, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONVERBOSE", "1")  # more than a pipe holds
    assert carry_out(study(arrays), tmp_path / "out") == 0


@pytest.mark.parametrize("workers", [0, -1])
def test_no_workers_at_all_are_refused(arrays, tmp_path, workers):
    with pytest.raises(UserError, match=f"workers is {workers}; it is a whole number of at least 1"):
        carry_out(study(arrays), tmp_path / "out", workers=workers)
    assert not (tmp_path / "out").exists()


def test_what_is_done_is_not_done_again(arrays, tmp_path):
    asked = study(arrays)
    carry_out(asked, tmp_path / "out")
    model = tmp_path / "out" / CELLS / asked.cells()[0].name / "model.safetensors"
    before = model.stat().st_mtime_ns
    assert carry_out(asked, tmp_path / "out") == 0
    assert model.stat().st_mtime_ns == before


def test_a_folder_of_another_study_is_refused(arrays, tmp_path):
    carry_out(study(arrays), tmp_path / "out")
    with pytest.raises(UserError, match="holds another comparison"):
        carry_out(study(arrays, releases=7), tmp_path / "out")
    with pytest.raises(UserError, match="is not empty"):
        carry_out(study(arrays), tmp_path)


def begun(arrays, folder, act):
    """A study of one long cell, saved after every release; once it has begun, `act` is called with its folder."""
    asked = study(arrays, releases=600)
    asked = replace(asked, settings={**asked.settings, "checkpoint_seconds": 0.0})
    cell = folder / CELLS / asked.cells()[0].name

    def wait():
        while not (cell / "metrics.jsonl").is_file() or not (cell / "metrics.jsonl").read_text():
            time.sleep(0.02)
        act(cell)

    Thread(target=wait, daemon=True).start()
    return asked, cell


def test_stopped_in_the_middle_it_goes_on_there_and_ends_as_if_it_had_not_been(arrays, tmp_path):
    asked, cell = begun(arrays, tmp_path / "out", lambda _: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        carry_out(asked, tmp_path / "out")
    assert collect(asked, tmp_path / "out")[0].state == "waiting"
    assert carry_out(asked, tmp_path / "out") == 0
    carry_out(asked, tmp_path / "whole")
    one, other = (
        load_file(tmp_path / name / CELLS / cell.name / "model.safetensors") for name in ("out", "whole")
    )
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the process below /proc")
def test_a_cell_whose_process_is_killed_is_told_as_failed_and_done_the_next_time(arrays, tmp_path):
    def kill(cell):
        for process in Path("/proc").glob("[0-9]*"):
            if cell.name.encode() in (process / "cmdline").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)

    asked, cell = begun(arrays, tmp_path / "out", kill)
    assert carry_out(asked, tmp_path / "out") == 1
    assert (cell / ERROR).read_text() == "the process ended with code -9"
    assert collect(asked, tmp_path / "out")[0].state == "failed"
    assert carry_out(asked, tmp_path / "out") == 0
    assert collect(asked, tmp_path / "out")[0].state == "done"


def test_progress_is_told_with_the_time_that_is_left(arrays, tmp_path):
    told = []

    class Audience:
        def standing(self, **standing):
            told.append(standing)

    carry_out(study(arrays, seeds=[1, 2, 3]), tmp_path / "out", workers=1, audience=Audience())
    assert told[-1] == {"done": 3, "failed": 0, "running": 0, "of": 3, "seconds_left": 0.0}
    assert max(each["running"] for each in told) == 1
    assert any(each["seconds_left"] for each in told)


def test_the_best_of_a_grid_is_shown_with_what_choosing_it_would_cost(arrays, tmp_path):
    method = {"recipe": "dp-sgd", "grid": {"learning_rate": [1e-6, 2.0]}}
    asked = study(arrays, methods=[method])
    carry_out(asked, tmp_path / "out")
    rows = collect(asked, tmp_path / "out")
    page = markdown(rows, tmp_path / "out")
    best = max(rows, key=lambda row: row.accuracy)
    assert f"learning_rate {best.point['learning_rate']}; best of 2" in page
    assert "best of 2 by the accuracy shown" in page
    cost = float(page.split("costs all of them: epsilon ")[1].split(" ")[0])
    assert best.epsilon_certified < cost < 2 * best.epsilon_certified

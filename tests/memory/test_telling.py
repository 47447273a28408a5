"""What a run with a memory tells: functions of releases, finite, and labelled where it is no guarantee."""

import json
import math

import pytest

from discreet.recipes import DPSGD, FODPSGD, SMADPSGD
from discreet.report.material import read_marks
from discreet.training.fit import drive
from discreet.training.remembering import MARGINAL

SIZES = {"expected_batch_size": 30, "releases": 12, "noise_multiplier": 1.2}
SMA = {**SIZES, "fresh_weight": 0.6, "spectrum_every": 2, "warm_up": 1.0}


def told(runs, recipe, folder) -> list[dict[str, float]]:
    run = runs.start(recipe, folder=folder)
    drive(run, marks=4)
    run.let_go()
    return [mark.told for mark in read_marks(run.folder.metrics)]


def test_a_filter_tells_depth_and_share(runs, tmp_path):
    marks = told(runs, FODPSGD(**SIZES, fresh_weight=0.6, kernel="uniform"), tmp_path / "run")
    assert [set(each) for each in marks] == [{"memory depth", "memory ratio"}] * 4
    # Releases 4 to 6 look back over three each; of the first three the second looks back over one, the third over two.
    assert [each["memory depth"] for each in marks] == pytest.approx([1.25, 2.0, 2.0, 2.0])
    assert all(0 < each["memory ratio"] < 1 for each in marks)


def test_a_spectral_memory_tells_of_its_stages_and_of_the_marginal_cost(runs, tmp_path):
    marks = told(runs, SMADPSGD(**SMA), tmp_path / "run")
    stages = {"rho 1", "rho 4", "lambda 1", "lambda 4"}
    assert [set(each) for each in marks] == [stages | {"memory depth", "memory ratio", MARGINAL}] * 4
    assert "not a guarantee" in MARGINAL
    costs = [each[MARGINAL] for each in marks]
    assert costs == sorted(costs)
    plan = SMADPSGD(**SMA).plan(90, runs.start(SMADPSGD(**SMA)).plan.budget)
    assert costs[-1] == plan.marginal_epsilon(12, 3) < plan.epsilon()


def test_whole_gradients_have_no_marginal_cost(runs, tmp_path):
    marks = told(runs, SMADPSGD(**SMA, clipping="flat"), tmp_path / "run")
    assert all(MARGINAL not in each for each in marks)


def test_without_a_memory_nothing_is_told(runs, tmp_path):
    assert told(runs, DPSGD(**SIZES, clipping="layer-wise"), tmp_path / "run") == [{}] * 4


def test_what_is_not_finite_is_not_written_down(runs, tmp_path, monkeypatch):
    from discreet.memory import spectral

    right = spectral._by_stage
    monkeypatch.setattr(
        spectral, "_by_stage", lambda *arguments: {**right(*arguments), f"{arguments[0]} odd": math.inf}
    )
    run = runs.start(SMADPSGD(**SMA), folder=tmp_path / "run")
    assert next(iter(run)).remembered == {}
    assert math.inf in next(iter(run)).remembered.values()
    run.let_go()
    told(runs, SMADPSGD(**SMA), tmp_path / "other")
    lines = (tmp_path / "other" / "metrics.jsonl").read_text().splitlines()
    assert all(math.isfinite(value) for line in lines for value in json.loads(line)["told"].values())

"""A job: plain values in, the same job out, and nothing taken that has no meaning."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from discreet.cli.main import parser
from discreet.errors import UserError
from discreet.jobs.job import Job, read_toml
from discreet.recipes import RECIPES

ROOT = Path(__file__).parents[2]
COMMAND = {"config", "resume", "dry_run", "quiet", "output", "set", "feature_option", "model_option", "run"}
OTHERWISE = {
    "no_evaluation": "evaluation",
    "no_feature_cache": "feature_cache",
    "no_tensorboard": "tensorboard",
}


def test_a_job_comes_back_from_json() -> None:
    job = Job(data="a.npz", settings={"epochs": 3.0}, classes="a,b", model_options={"width": 7}, seed=3)
    assert Job.from_json(json.loads(json.dumps(job.to_json()))) == job


def test_every_option_of_the_command_is_a_setting_of_the_job_or_of_a_recipe() -> None:
    options = set(vars(parser().parse_args(["train", "digits"]))) - COMMAND
    named = {OTHERWISE.get(name, name) for name in options}
    known = {each.name for each in fields(Job)} | {
        each.name for recipe in RECIPES.values() for each in fields(recipe)
    }
    assert named <= known
    assert {each.name for each in fields(Job)} - {"settings", "feature_options", "model_options"} <= named


@pytest.mark.parametrize(
    ("given", "read"), [(10, "10"), (["cat", "dog"], "cat,dog"), ("cat,dog", "cat,dog"), ([0, 1], "0,1")]
)
def test_classes_in_a_file_may_be_a_number_or_a_list(given: object, read: str) -> None:
    assert Job.from_settings({"data": "a.npz", "classes": given}).classes == read


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"epsilon": "3"}, "epsilon is '3'; it is a number"),
        ({"seed": 1.5}, "seed is 1.5; it is a whole number"),
        ({"seed": True}, "seed is True; it is a whole number"),
        ({"evaluation": 1}, "evaluation is 1; it is true or false"),
        ({"data": 3}, "data is 3; it is a text"),
        ({"model_options": {"width": float("inf")}}, "width is inf"),
        ({"betas": [0.9, float("nan")]}, "betas is nan"),
    ],
)
def test_values_of_another_kind_are_refused(settings: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        Job.from_settings({"data": "digits", **settings})


def test_a_name_with_a_dash_is_the_name_with_an_underscore(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text("clip-norm = 2.0")
    assert read_toml(tmp_path / "job.toml") == {"clip_norm": 2.0}


@pytest.mark.parametrize("name", ["digits", "patients"])
def test_the_examples_are_jobs(name: str) -> None:
    job = Job.from_settings(read_toml(ROOT / "examples" / f"{name}.toml"))
    assert job.chosen_recipe().plan(5000, job.budget()).releases > 100


def test_the_patients_that_are_made_up_fit_their_schema(tmp_path: Path) -> None:
    import runpy
    import sys
    from unittest.mock import patch

    from discreet.data.table import load_table

    with patch.object(sys, "argv", ["make_patients.py", str(tmp_path / "patients.csv"), "200"]):
        runpy.run_path(str(ROOT / "examples" / "make_patients.py"), run_name="__main__")
    records = load_table(tmp_path / "patients.csv", ROOT / "examples" / "patients-schema.toml")
    assert len(records) == 200
    records.require_trainable()

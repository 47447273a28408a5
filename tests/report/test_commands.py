import shlex
from pathlib import Path

import pytest

from discreet.cli.main import parser
from discreet.cli.train import settings_of
from discreet.jobs.job import Job
from discreet.report.commands import repeat, verify

JOBS = {
    "as it comes": Job(data="digits"),
    "a table with a schema": Job(
        data="my patients.csv",
        target="out'come",
        schema="s.toml",
        epsilon=1.5,
        delta=1e-6,
        size_is_public=True,
    ),
    "settings of recipe and model": Job(
        data="mnist",
        recipe="dp-adam",
        settings={"betas": [0.8, 0.99], "clip_norm": 0.5, "noise_schedule": "linear:end=0.5"},
        model="mlp",
        model_options={"width": 64},
    ),
    "everything switched off": Job(data="digits", evaluation=False, tensorboard=False, seed=7, threads=2),
}


@pytest.mark.parametrize("name", JOBS)
def test_the_command_that_is_shown_asks_for_the_same_job(name: str) -> None:
    line = repeat({"job": JOBS[name].to_json()})
    assert line is not None
    program, *words = shlex.split(line)
    assert program == "discreet"
    assert Job.from_settings(settings_of(parser().parse_args(words))) == JOBS[name]


def test_a_run_from_python_has_no_command() -> None:
    assert repeat({}) is None


def test_the_command_that_verifies_takes_folders_with_blanks() -> None:
    assert shlex.split(verify(Path("runs/my run"))) == ["discreet", "certificate", "runs/my run"]

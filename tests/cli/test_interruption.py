"""Ctrl-C, a request to terminate, and going on afterwards."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

Discreet = Callable[..., Any]
LONG = "train digits --epochs 400 --learning-rate 0.05 --no-tensorboard --marks 2000"


def begun(words: str, folder: Path) -> subprocess.Popen[str]:
    """A command in a process of its own that has made its first release."""
    process = subprocess.Popen(
        [sys.executable, "-m", "discreet", *words.split(), "--output", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    metrics = folder / "metrics.jsonl"
    while not (metrics.exists() and metrics.stat().st_size):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    return process


def test_ctrl_c_ends_the_run_with_a_model_and_a_certificate(discreet: Discreet, tmp_path: Path) -> None:
    process = begun(LONG, tmp_path / "out")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert "Traceback" not in err
    record = json.loads((tmp_path / "out/certificate.json").read_text())
    assert record["ended_early"]
    assert 1 <= record["releases_executed"] < record["releases_planned"]
    assert record["releases_executed"] <= record["releases_charged"]
    assert record["epsilon_of_what_ran"] < record["epsilon"] <= 3
    assert "discreet train --resume" in out
    assert load_file(tmp_path / "out/model.safetensors")
    assert discreet("certificate out").code == 0


def test_a_second_signal_stops_at_once_and_says_how_to_go_on(tmp_path: Path) -> None:
    process = begun(LONG, tmp_path / "out")
    # Both while it sleeps: whatever it is doing when it wakes, it finds the second after the first.
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("discreet: stopped; discreet train --resume ")
    assert (tmp_path / "out/private/run.key").exists()
    assert not (tmp_path / "out/certificate.json").exists()


def test_a_signal_before_the_run_begins_leaves_nothing(
    discreet: Discreet, arrays: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.jobs.job import Job

    monkeypatch.setattr(Job, "load", lambda _: signal.raise_signal(signal.SIGINT))
    answer = discreet(arrays())
    assert (answer.code, answer.err) == (130, "discreet: interrupted\n")
    assert not Path("out").exists()


def interrupt_after(
    releases: int, monkeypatch: pytest.MonkeyPatch, number: signal.Signals = signal.SIGINT
) -> None:
    """Let a signal come while release number `releases` is being made."""
    from discreet.training.run import Run

    plain = Run.release

    def release(run: Run) -> Any:
        if run.state.releases == releases - 1:
            signal.raise_signal(number)
        return plain(run)

    monkeypatch.setattr(Run, "release", release)


@pytest.mark.parametrize(("recipe", "number"), [("dp-sgd", signal.SIGINT), ("dp-adambc", signal.SIGTERM)])
def test_an_interrupted_run_goes_on_to_the_weights_of_an_uninterrupted_one(
    discreet: Discreet,
    arrays: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    recipe: str,
    number: signal.Signals,
) -> None:
    words = f"{arrays()} --seed 5 --recipe {recipe}"
    whole = words.replace("--output out", "--output whole")
    assert discreet(whole).code == 0
    with monkeypatch.context() as patched:
        interrupt_after(2, patched, number)
        assert discreet(words).code == 0
    ended = json.loads(Path("out/certificate.json").read_text())
    assert (ended["ended_early"], ended["releases_executed"]) == (True, 2)
    assert discreet("train --resume out --quiet").code == 0
    done = json.loads(Path("out/certificate.json").read_text())
    assert (done["ended_early"], done["releases_executed"], done["releases_charged"]) == (False, 3, 3)
    one, other = load_file("out/model.safetensors"), load_file("whole/model.safetensors")
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    again = discreet("train --resume out")
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "has ended" in again.err


def test_the_handlers_of_before_are_put_back(discreet: Discreet, arrays: Callable[..., str]) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    discreet(arrays())
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_reader_that_goes_away_does_not_end_the_run(tmp_path: Path) -> None:
    process = begun("train digits --releases 40 --no-tensorboard --marks 40", tmp_path / "out")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait() == 0
    assert (tmp_path / "out/certificate.json").exists()

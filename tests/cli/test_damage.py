"""Damaged runs and full disks: one line, exit code 2, nothing charged that was not."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Discreet = Callable[..., Any]


@pytest.fixture
def interrupted(discreet: Discreet, arrays: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was ended after one of its three releases."""
    from discreet.training.run import Run

    plain = Run.release

    def release(run: Run) -> Any:
        signal.raise_signal(signal.SIGINT)
        return plain(run)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "release", release)
        assert discreet(arrays()).code == 0
    return Path("out")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])


def overwrite(path: Path) -> None:
    path.write_bytes(b"\xff\x00 not what was here")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0x80
    path.write_bytes(content)


DAMAGES = (cut, overwrite, empty, flip, Path.unlink)
NEEDED = ("run.json", "events.jsonl", "private/checkpoint.safetensors", "private/run.key")


@pytest.mark.parametrize("name", NEEDED)
def test_a_damaged_run_is_not_resumed(discreet: Discreet, interrupted: Path, name: str) -> None:
    for damage in DAMAGES:
        shutil.copytree(interrupted, "copy")
        damage(Path("copy", name))
        before = {path: path.read_bytes() for path in Path("copy").rglob("*") if path.is_file()}
        answer = discreet("train --resume copy")
        assert (answer.code, answer.err.count("\n")) == (2, 1), (damage, answer)
        after = {path: path.read_bytes() for path in Path("copy").rglob("*") if path.is_file()}
        assert after == before
        shutil.rmtree("copy")


def test_an_undamaged_copy_of_a_run_is_resumed(discreet: Discreet, interrupted: Path) -> None:
    shutil.copytree(interrupted, "copy")
    assert discreet("train --resume copy").code == 0


@pytest.mark.parametrize(
    "content", ["[]", "3", "{}", '{"plan": {}, "notes": {"job": {"data": "x", "y": 1}}}']
)
def test_foreign_settings_are_not_resumed(discreet: Discreet, interrupted: Path, content: str) -> None:
    (interrupted / "run.json").write_text(content)
    answer = discreet("train --resume out")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "run.json" in answer.err


@pytest.mark.parametrize("name", ["certificate.json", "events.jsonl"])
def test_a_damaged_certificate_or_log_is_not_confirmed(
    discreet: Discreet, interrupted: Path, name: str
) -> None:
    for damage in DAMAGES:
        shutil.copytree(interrupted, "copy")
        damage(Path("copy", name))
        answer = discreet("certificate copy")
        assert answer.code in (1, 2), (damage, answer)
        assert "Traceback" not in answer.err
        shutil.rmtree("copy")


@pytest.mark.parametrize(
    ("field", "lie", "code"),
    [
        ("epsilon", 0.1, 1),
        ("guarantee", False, 1),
        ("releases_executed", 0, 1),
        ("releases_executed", 99, 1),
        ("ended_early", False, 1),
        ("neighbours", "none", 1),
        ("threat_model", [], 1),
        ("epsilon", "low", 1),
        ("releases_executed", "few", 2),
        ("charges_hidden", [3], 2),
        ("assumptions", 3, 2),
        ("epsilons", [3], 2),
        ("trained_on", None, 2),
        ("schema", 99, 2),
    ],
)
def test_a_certificate_that_was_changed_is_not_confirmed(
    discreet: Discreet, interrupted: Path, field: str, lie: object, code: int
) -> None:
    path = interrupted / "certificate.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: lie}))
    answer = discreet("certificate out")
    assert answer.code == code, answer
    if code == 1:
        assert "DIFFERENT  " in answer.err
        assert "Do not rely on it" in answer.err
        assert "every number agrees" not in answer.out


def test_a_log_that_was_changed_does_not_bear_the_certificate(discreet: Discreet, interrupted: Path) -> None:
    path = interrupted / "events.jsonl"
    text = path.read_text()
    path.write_text(text.replace('"noise_multiplier":', '"noise_multiplier":1', 1))
    assert path.read_text() != text
    answer = discreet("certificate out")
    assert answer.code in (1, 2)
    assert "events.jsonl" in answer.err


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Make every write to a file descriptor fail from the `after`-th durable write on."""
    plain, left = os.fsync, [after]

    def fsync(descriptor: int) -> None:
        if left[0] <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left[0] -= 1
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("after", range(12))
def test_a_full_disk_ends_the_run_in_one_line_and_it_can_be_resumed(
    discreet: Discreet, arrays: Callable[..., str], monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    with monkeypatch.context() as patched:
        fill_the_disk(patched, after)
        answer = discreet(f"{arrays()} --seed 3 --checkpoint-seconds 0")
    assert answer.code == 2
    assert answer.err == "discreet: the disk is full; make room. A run that had begun goes on with --resume\n"
    if not Path("out").exists():
        return
    charged = json.loads(Path("out/events.jsonl").read_text().splitlines()[-1])["record"].get("count", 0)
    assert charged <= 3
    resumed = discreet("train --resume out")
    assert resumed.code == 0, resumed.err
    assert discreet("certificate out").code == 0


def test_a_full_disk_before_the_run_begins_leaves_no_folder(
    discreet: Discreet, arrays: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_the_disk(monkeypatch, after=1)
    assert discreet(arrays()).code == 2
    assert not Path("out").exists()

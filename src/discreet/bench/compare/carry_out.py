"""The cells of a study, side by side within the cores that there are; what is done stays done."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from discreet.bench.compare.places import CELLS, ERROR, SECONDS, STUDY
from discreet.bench.compare.study import Cell, Study
from discreet.errors import UserError
from discreet.jobs.cores import cores
from discreet.training.files import read_json, write_json
from discreet.training.folder import RunFolder

_POLL = 0.1


class Audience(Protocol):
    """Somebody who is told how the cells get on."""

    def standing(self, *, done: int, failed: int, running: int, of: int, seconds_left: float | None) -> None:
        """How many cells there are of each kind, and about how long the rest will take."""
        ...


@dataclass
class _Worker:
    cell: Cell
    folder: Path
    process: subprocess.Popen[bytes]
    said: IO[bytes]
    began: float = field(default_factory=time.monotonic)


def carry_out(
    study: Study, folder: Path, *, workers: int | None = None, audience: Audience | None = None
) -> int:
    """Carry out all cells that are not done yet; the number of those that failed.

    A cell that fails leaves its error in its folder, and the others go on. Stopped, by Ctrl-C or a crash, the same
    call goes on where it was, cells half-way included.

    Args:
        study: what to compare.
        folder: where the cells lie; a folder that holds another study is refused.
        workers: how many at a time; as many as there are cores, when left out.
        audience: who is told of progress.
    """
    if workers is not None and workers < 1:
        raise UserError(f"workers is {workers}; it is a whole number of at least 1")
    study.check()
    cells = study.cells()
    _claim(study, folder)
    waiting = [cell for cell in cells if not _done(_place(folder, cell))]
    done, failed = len(cells) - len(waiting), 0
    spent: dict[tuple[str, str], list[float]] = {}
    running: list[_Worker] = []
    most = workers or cores()
    try:
        while waiting or running:
            while waiting and len(running) < most:
                cell = waiting.pop(0)
                running.append(_start(cell, _place(folder, cell)))
            time.sleep(_POLL)
            for worker in [each for each in running if each.process.poll() is not None]:
                running.remove(worker)
                if _end(worker):
                    done += 1
                    kind = (worker.cell.method, worker.cell.data)
                    spent.setdefault(kind, []).append(time.monotonic() - worker.began)
                else:
                    failed += 1
            if audience is not None:
                audience.standing(
                    done=done,
                    failed=failed,
                    running=len(running),
                    of=len(cells),
                    seconds_left=_left(waiting, running, spent, most),
                )
    finally:
        for worker in running:
            worker.process.kill()
            worker.process.wait()
    return failed


def _claim(study: Study, folder: Path) -> None:
    """Make the folder this study's, or find that it is."""
    path = folder / STUDY
    if path.is_file():
        if read_json(path) != study.to_json():
            raise UserError(f"{folder} holds another comparison; choose another output folder")
        return
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty, and not the folder of a comparison; choose another one")
    (folder / CELLS).mkdir(parents=True)
    write_json(path, study.to_json())


def _place(folder: Path, cell: Cell) -> Path:
    return folder / CELLS / cell.name


def _done(place: Path) -> bool:
    """Whether a cell is complete, its report included."""
    return (place / SECONDS).is_file()


def _start(cell: Cell, place: Path) -> _Worker:
    if place.exists() and not RunFolder(place).checkpoint.is_file():
        shutil.rmtree(place)  # an attempt that never began
    # Not a pipe: nobody would read it while the cell runs, and it would fill up. Closed when the cell is collected.
    said = tempfile.TemporaryFile()  # noqa: SIM115
    process = subprocess.Popen(
        [sys.executable, "-m", "discreet.bench.compare.worker", str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=said,
        env=_environment(os.environ, threads=cell.job().threads or 1),
        start_new_session=True,  # Ctrl-C is for the parent, which then ends them
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it ended at once; its error is told when it is collected
        asked = {"job": cell.job().to_json(), "matched": cell.matched}
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
    return _Worker(cell, place, process, said)


def _environment(variables: Mapping[str, str], *, threads: int) -> dict[str, str]:
    """No more threads than asked for, in whatever library: cells would be in each other's way."""
    return {**variables, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}


def _end(worker: _Worker) -> bool:
    """Collect a process that has ended; whether it did what it was to do."""
    worker.process.communicate()
    with worker.said as said:
        said.seek(0)
        told = said.read().decode(errors="replace").strip().splitlines()
    if worker.process.returncode == 0 and _done(worker.folder):
        (worker.folder / ERROR).unlink(missing_ok=True)
        return True
    worker.folder.mkdir(parents=True, exist_ok=True)
    (worker.folder / ERROR).write_text(
        told[-1] if told else f"the process ended with code {worker.process.returncode}"
    )
    return False


def _left(
    waiting: list[Cell], running: list[_Worker], spent: Mapping[tuple[str, str], list[float]], workers: int
) -> float | None:
    """About how long the rest takes: by what cells of the same method on the same data took, or any cells."""
    all_of_them = [seconds for some in spent.values() for seconds in some]
    if not all_of_them:
        return None

    def expected(cell: Cell) -> float:
        known = spent.get((cell.method, cell.data), all_of_them)
        return sum(known) / len(known)

    now = time.monotonic()
    rest = sum(expected(cell) for cell in waiting)
    rest += sum(max(0.0, expected(worker.cell) - (now - worker.began)) for worker in running)
    return rest / workers

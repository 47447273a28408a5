"""Telling people how far a run is: a line of JSON, TensorBoard, the terminal.

What is told is public: release numbers, settings, the epsilon spent, and accuracy on public records. Times are whole
seconds and are taken at marks of many releases, because how long one release took says something about its batch.
Where the number of trials is secret no file tells a time: how long a release took says how many trials it needed.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from discreet.accounting.rounding import rounded_up


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What is known at some point of a run.

    Attributes:
        seconds: since the start; None where times are secret.
        told: further figures by name, each a function of what was released.
    """

    release: int
    of: int
    epsilon: float
    budget: float
    noise_multiplier: float
    learning_rate: float
    accuracy: float | None
    seconds: int | None
    told: dict[str, float] = field(default_factory=dict)


class Listener(Protocol):
    """Somebody who wants to hear how the run goes."""

    def release(self, number: int) -> None:
        """A release was made."""
        ...

    def mark(self, mark: Mark) -> None:
        """A point was reached at which more is told."""
        ...

    def close(self) -> None:
        """The run has ended."""
        ...


class JsonLines:
    """One JSON object per mark, appended to a file. A resumed run goes on in the same file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def release(self, number: int) -> None:
        """Nothing: only marks are written."""

    def mark(self, mark: Mark) -> None:
        """Write the mark."""
        self._file.write(json.dumps(asdict(mark)) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class TensorBoard:
    """Scalars for TensorBoard."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard.writer import SummaryWriter

        self._writer = SummaryWriter(str(folder))

    def release(self, number: int) -> None:
        """Nothing: only marks are written."""

    def mark(self, mark: Mark) -> None:
        """Write the mark's numbers at its release."""
        scalars = asdict(mark)
        scalars.update(scalars.pop("told"))
        for name, value in scalars.items():
            if name not in ("release", "of", "seconds") and value is not None:
                self._writer.add_scalar(name, value, mark.release, walltime=_clock(mark))

    def close(self) -> None:
        """Write out what is left."""
        self._writer.close()


def _clock(mark: Mark) -> int:
    """The time of day in seconds; the number of the release where times are secret."""
    return mark.release if mark.seconds is None else round(time.time())


class Terminal:
    """A progress bar; where the output is not a terminal, one line per mark."""

    def __init__(
        self, console: Console, *, releases: int, budget: float, done: int = 0, unit: str = "release"
    ) -> None:
        self._console, self._done, self._unit = console, done, unit
        self._start = time.monotonic()
        self._progress: Progress | None = None
        self._task = TaskID(0)
        if console.is_terminal:
            self._progress = Progress(
                BarColumn(bar_width=None),
                TextColumn(unit + " {task.completed:.0f}/{task.total:.0f}"),
                TextColumn("{task.fields[told]}"),
                TimeRemainingColumn(compact=True),
                console=console,
            )
            self._task = self._progress.add_task(
                "", total=releases, completed=done, told=f"epsilon 0 of {budget:g}"
            )
            self._progress.start()

    def release(self, number: int) -> None:
        """Move the bar."""
        if self._progress:
            self._progress.update(self._task, completed=number)

    def mark(self, mark: Mark) -> None:
        """Show epsilon and accuracy."""
        told = f"epsilon {rounded_up(mark.epsilon, 3)} of {mark.budget:g}"
        if mark.accuracy is not None:
            told += f"  accuracy {mark.accuracy:.2%}"
        if "acceptance rate" in mark.told:
            told += f"  accepted {mark.told['acceptance rate']:.0%}"
        if self._progress:
            self._progress.update(self._task, completed=mark.release, told=told)
        else:
            seconds = time.monotonic() - self._start
            left = seconds * (mark.of - mark.release) / (mark.release - self._done)
            self._console.print(
                f"{self._unit} {mark.release}/{mark.of}  {told}  {left:.0f} s left", highlight=False
            )

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._progress:
            self._progress.stop()


class Progressing:
    """Passes what happens in a run on to listeners, and decides when a mark is due.

    Args:
        listeners: who hears of it.
        releases: how many releases the plan has.
        marks: how many marks to spread over them.
        timed: whether marks tell the time.
    """

    def __init__(self, listeners: list[Listener], *, releases: int, marks: int, timed: bool = True) -> None:
        self._listeners, self._timed = listeners, timed
        self._stride = max(1, -(-releases // max(1, marks)))
        self._releases = releases
        self._start = time.monotonic()

    def due(self, number: int) -> bool:
        """Whether a mark is due after that release."""
        return number % self._stride == 0 or number == self._releases

    def seconds(self) -> int | None:
        """Whole seconds since the start, where they may be told."""
        return round(time.monotonic() - self._start) if self._timed else None

    def release(self, number: int) -> None:
        """Pass a release on."""
        for listener in self._listeners:
            listener.release(number)

    def mark(self, **facts: Any) -> None:
        """Pass a mark on."""
        mark = Mark(seconds=self.seconds(), **facts)
        for listener in self._listeners:
            listener.mark(mark)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for listener in self._listeners:
            listener.close()

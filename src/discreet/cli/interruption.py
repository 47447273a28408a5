"""What Ctrl-C does to a run: the first one lets it end well, the second one stops it at once."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Protocol


class Stoppable(Protocol):
    """A run in progress."""

    stop_requested: bool


class Interruption:
    """The signals' handler. Until it is given a run, the first signal already stops the command."""

    def __init__(self) -> None:
        self.run: Stoppable | None = None
        self._asked = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """End the run after the release that is being made; the second time, stop."""
        if self.run is None or self._asked:
            raise KeyboardInterrupt
        self._asked = self.run.stop_requested = True
        # Not print: the signal may have come in the middle of one.
        os.write(
            sys.__stderr__.fileno() if sys.__stderr__ else 2,
            b"\nending after this release; once more to stop\n",
        )


@contextmanager
def patiently(folder: Path) -> Iterator[Interruption]:
    """Take over Ctrl-C and the request to terminate, for as long as a run lasts."""
    interruption = Interruption()
    before = {number: signal.signal(number, interruption) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    except KeyboardInterrupt:
        if interruption.run is None:
            raise
        told = f"stopped; discreet train --resume {folder} goes on from the last checkpoint"
        raise KeyboardInterrupt(told) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

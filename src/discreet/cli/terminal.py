"""Where a command prints, and what becomes of it when nobody reads any more."""

from __future__ import annotations

import os
import sys
from typing import Any

from rich.console import Console


class _Console(Console):
    """A console that falls silent when its reader has gone: a run goes on without an audience."""

    def on_broken_pipe(self) -> None:
        """Print nowhere from now on."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def terminal(*, quiet: bool = False) -> Console:
    """The console of a command."""
    return _Console(highlight=False, markup=False, emoji=False, quiet=quiet)


def note(message: Warning | str, *_: Any, **__: Any) -> None:
    """Tell a warning in one line."""
    print(f"discreet: note: {message}", file=sys.stderr)

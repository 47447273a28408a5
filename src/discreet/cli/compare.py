"""`discreet compare`: recipes next to each other at the same certified epsilon."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from discreet.cli.terminal import terminal
from discreet.errors import UserError


def compare(arguments: argparse.Namespace) -> int:
    """Carry out a comparison, or go on with one, and print its tables; 1 when a cell failed."""
    from discreet.bench.compare import Study, carry_out, collect, write

    study = Study.from_json(_study(arguments))
    study.check()
    folder, console = arguments.output, terminal(quiet=arguments.quiet)
    console.print(f"{len(study.cells())} cells in {folder}: the same command goes on where it was stopped")
    if arguments.dry_run:
        for cell in study.cells():
            console.print(f"  {cell.name}", soft_wrap=True)
        return 0
    try:
        failed = carry_out(study, folder, workers=arguments.workers, audience=_Standing(console))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the same command goes on from where it is") from None
    rows = collect(study, folder)
    console.print(f"\n{write(rows, folder)}", soft_wrap=True)
    console.print(f"The tables lie in {folder}: results.md, and results.parquet for programs")
    return 1 if failed else 0


def _study(arguments: argparse.Namespace) -> dict[str, Any]:
    """The file's study, overridden by what the command line says."""
    from discreet.cli.train import pairs
    from discreet.jobs.job import read_toml

    study = {} if arguments.config is None else read_toml(arguments.config)
    for name in ("data", "epsilons", "seeds"):
        if getattr(arguments, name) is not None:
            study[name] = getattr(arguments, name)
    if arguments.recipes is not None:
        study["methods"] = [{"recipe": name} for name in arguments.recipes]
    if arguments.set is not None:
        before = study.get("settings", {})
        if not isinstance(before, Mapping):
            raise UserError(f"settings are {before!r}; they are a table of names and values")
        study["settings"] = {**before, **pairs("--set", arguments.set)}
    return study


class _Standing:
    """A line about the cells, in place of the one before where that can be."""

    def __init__(self, console: Console) -> None:
        self._console, self._last = console, ""
        self._status = console.status("getting ready") if console.is_terminal else None
        if self._status:
            self._status.start()

    def standing(self, *, done: int, failed: int, running: int, of: int, seconds_left: float | None) -> None:
        """Tell it, if it is news."""
        from discreet.jobs.telling import clock

        told = f"{done} of {of} done, {running} running"
        told += f", {failed} failed" if failed else ""
        news = told != self._last
        self._last = told
        left = "" if seconds_left is None else f", about {clock(seconds_left)} left"
        if self._status:
            self._status.update(told + left)
            if done + failed == of:
                self._status.stop()
        elif news:
            self._console.print(told + left)

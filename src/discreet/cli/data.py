"""`discreet data`: get a data set, list them, write a schema template."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from discreet.data import named
from discreet.errors import UserError


def get(arguments: argparse.Namespace) -> int:
    """Download a data set, or say where it already lies."""
    from discreet.data.acquire import get as fetch

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=Console(stderr=True))
    tasks: dict[str, TaskID] = {}

    def show(name: str, here: int, total: int) -> None:
        if name not in tasks:
            progress.start()
            tasks[name] = progress.add_task(name, total=total)
        progress.update(tasks[name], completed=here)

    try:
        place = fetch(arguments.name, arguments.folder, progress=show, mirror=arguments.mirror)
    finally:
        if tasks:
            progress.stop()
    print(f"{arguments.name} lies in {place}")
    return 0


def listing(arguments: argparse.Namespace) -> int:
    """List the named data sets."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("name", "what it is", "here"):
        table.add_column(heading)
    for name in named.names():
        entry = named.entry(name)
        here = "comes with scikit-learn" if not entry.layouts else str(entry.find() or "no")
        table.add_row(name, entry.summary, here)
    Console(highlight=False).print(table)
    return 0


def schema(arguments: argparse.Namespace) -> int:
    """Write or print a schema template."""
    from discreet.data.template import schema_template

    text = schema_template(arguments.table, target=arguments.target)
    if arguments.output is None:
        sys.stdout.write(text)
    elif arguments.output.exists():
        raise UserError(f"{arguments.output} exists already; choose another name")
    else:
        arguments.output.write_text(text, encoding="utf-8")
        print(
            f"wrote {arguments.output}: fill in bounds and categories from what is public, not from the records"
        )
    return 0

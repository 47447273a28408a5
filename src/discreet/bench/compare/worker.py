"""One cell in a process of its own: what it does to the process, it does to no other cell.

Run as `python -m discreet.bench.compare.worker FOLDER`, with the job as JSON on standard input, and whether it is the
plain training matched to that job. The worker goes on from the folder's last checkpoint where there is one. It ends
when its standard input does, that is with its parent.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path


def main(folder: Path) -> int:
    """Carry out the cell; 0 when it is whole, 2 with one line on the error stream when it cannot be."""
    asked = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from rich.console import Console

    from discreet.bench.compare.matching import matched
    from discreet.bench.compare.places import SECONDS
    from discreet.jobs.carry_out import carry_out, prepare
    from discreet.jobs.job import Job
    from discreet.report import run_page
    from discreet.training.files import write_json, write_text
    from discreet.training.folder import RunFolder

    began = time.monotonic()
    place = RunFolder(folder)
    try:
        prepared = prepare(Job.from_json(asked["job"]))
        if asked["matched"]:
            prepared = matched(prepared)
        run = prepared.resume(folder) if place.checkpoint.is_file() else prepared.start(folder)
        carry_out(prepared, run, Console(quiet=True))
    except ValueError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2
    write_text(place.report, run_page(place))
    write_json(folder / SECONDS, round(time.monotonic() - began))
    return 0


def _end_with_parent() -> None:
    while sys.stdin.readline():
        pass
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

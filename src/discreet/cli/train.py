"""`discreet train`: from options to a run folder."""

from __future__ import annotations

import argparse
import signal
import sys
import time
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from discreet.errors import UserError
from discreet.jobs.job import Job, read_toml

_NOT_SETTINGS = (
    "run",
    "config",
    "resume",
    "dry_run",
    "quiet",
    "output",
    "set",
    "no_evaluation",
    "no_tensorboard",
)


def train(arguments: argparse.Namespace) -> int:
    """Carry out, resume, or only plan a training."""
    console = Console(highlight=False, quiet=arguments.quiet)
    warnings.showwarning = _warn
    if arguments.resume is not None:
        if arguments.data is not None or arguments.config is not None or arguments.output is not None:
            raise UserError("--resume takes everything from the run's folder; give it alone")
        job, folder = _earlier_job(arguments.resume), arguments.resume
    else:
        job = Job.from_settings(settings_of(arguments))
        folder = arguments.output or _free_folder(Path(job.data).name.split(".")[0])
    with _patient_interrupt() as interruption:
        return _carry_out(job, folder, console, arguments, interruption)


def _carry_out(
    job: Job, folder: Path, console: Console, arguments: argparse.Namespace, interruption: _Interruption
) -> int:
    from discreet.jobs.carry_out import describe_plan, prepare

    if not arguments.dry_run and arguments.resume is None and folder.exists():
        raise UserError(
            f"{folder} exists already; choose another output folder, or --resume it if it is a run"
        )
    with console.status("reading the records"):
        prepared = prepare(job)
    console.print(describe_plan(prepared), soft_wrap=True)
    if arguments.dry_run:
        from discreet.jobs.rehearsal import expected_seconds

        with console.status("timing a batch of made-up records"):
            seconds = expected_seconds(prepared)
        console.print(f"  expected time   about {_clock(seconds)} on this machine")
        return 0
    from discreet.jobs.carry_out import carry_out
    from discreet.report import run_page
    from discreet.training.files import write_text
    from discreet.training.folder import RunFolder

    began = time.monotonic()
    run = prepared.resume(folder) if arguments.resume is not None else prepared.start(folder)
    interruption.run = run
    result = carry_out(prepared, run, console)
    write_text(RunFolder(folder).report, run_page(RunFolder(folder)))
    console.print(f"\n{result.sentence()}", soft_wrap=True)
    console.print(f"It took {_clock(time.monotonic() - began)}. The run lies in {folder}:")
    console.print("  model.safetensors   the released weights")
    console.print("  certificate.html    what is guaranteed, in plain words (certificate.json for programs)")
    console.print("  report.html         how the run went")
    console.print(f"Check the certificate at any time: discreet certificate {folder}")
    if arguments.quiet:
        print(folder)
    return 0


def settings_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings of a job: the file's, overridden by those given on the command line."""
    settings = {} if arguments.config is None else read_toml(arguments.config)
    for name, value in vars(arguments).items():
        if value is not None and name not in _NOT_SETTINGS and name != "model_option":
            settings[name] = str(value) if isinstance(value, Path) else value
    if arguments.no_evaluation:
        settings["evaluation"] = False
    if arguments.no_tensorboard:
        settings["tensorboard"] = False
    if arguments.model_option:
        settings["model_options"] = {
            **settings.get("model_options", {}),
            **_pairs("--model-option", arguments.model_option),
        }
    settings.update(_pairs("--set", arguments.set or []))
    return settings


def _pairs(option: str, texts: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is read as TOML where it is that, otherwise as text."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UserError(f"{option} {text!r} is not of the form NAME=VALUE")
        try:
            pairs[name.strip().replace("-", "_")] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            pairs[name.strip().replace("-", "_")] = value
    return pairs


def _earlier_job(folder: Path) -> Job:
    from discreet.training.files import read_json
    from discreet.training.folder import RunFolder

    notes = read_json(RunFolder.open(folder).settings)["notes"]
    if "job" not in notes:
        raise UserError(
            f"{folder} was not made by `discreet train`; resume it from Python with discreet.resume"
        )
    return Job(**notes["job"])


def _free_folder(name: str) -> Path:
    number = 1
    while (folder := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return folder


class _Interruption:
    """What Ctrl-C does: the first one ends the run after the release that is being made, the second one at once."""

    def __init__(self) -> None:
        self.run: Any = None
        self.asked = False

    def __call__(self, number: int, frame: object) -> None:
        if self.run is None or self.asked:
            raise KeyboardInterrupt
        self.asked = self.run.stop_requested = True
        print("\nending after this release; once more to stop at once", file=sys.stderr)


@contextmanager
def _patient_interrupt() -> Iterator[_Interruption]:
    interruption = _Interruption()
    before = {number: signal.signal(number, interruption) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _clock(seconds: float) -> str:
    if seconds < 1:
        return "1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"discreet: note: {message}", file=sys.stderr)

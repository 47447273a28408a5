"""`discreet train`: from options to a run folder."""

from __future__ import annotations

import argparse
import threading
import time
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from discreet.cli.interruption import Interruption, patiently
from discreet.cli.terminal import note, terminal
from discreet.errors import UserError
from discreet.jobs.job import Job, job_of_run, read_toml

_COMMAND = (
    "run",
    "config",
    "resume",
    "dry_run",
    "quiet",
    "set",
    "feature_option",
    "model_option",
    "no_evaluation",
    "no_feature_cache",
    "no_tensorboard",
)
"""What says how the command is to work, or has another name in a job."""


def train(arguments: argparse.Namespace) -> int:
    """Carry out, resume, or only plan a training."""
    settings = settings_of(arguments)
    if arguments.resume is not None:
        if settings or arguments.dry_run:
            raise UserError("--resume takes everything from the run's folder; give it alone")
        job, folder = job_of_run(arguments.resume), arguments.resume
    else:
        output = settings.pop("output", None)
        job = Job.from_settings(settings)
        folder = _folder(output, job)
        if folder.exists() and not arguments.dry_run:
            raise UserError(
                f"{folder} exists already; choose another output folder, or --resume it if it is a run"
            )
    with warnings.catch_warnings(), patiently(folder) as interruption, _system_errors():
        warnings.showwarning = note
        return _carry_out(job, folder, terminal(quiet=arguments.quiet), arguments, interruption)


def _carry_out(
    job: Job, folder: Path, console: Console, arguments: argparse.Namespace, interruption: Interruption
) -> int:
    with console.status("getting ready"):
        from discreet.jobs.carry_out import carry_out, prepare
        from discreet.jobs.telling import clock, describe_plan, row

        prepared = prepare(job)
    console.print(describe_plan(prepared), soft_wrap=True)
    if arguments.dry_run:
        from discreet.jobs.rehearsal import expected_seconds

        with console.status("timing a batch of made-up records"):
            seconds = expected_seconds(prepared)
        console.print(row("expected time", f"about {clock(seconds)} on this machine"))
        return 0
    from discreet.report import run_page
    from discreet.training.files import write_text
    from discreet.training.folder import RunFolder

    began = time.monotonic()
    run = prepared.resume(folder) if arguments.resume is not None else prepared.start(folder)
    interruption.run = run
    result = carry_out(prepared, run, console)
    write_text(RunFolder(folder).report, run_page(RunFolder(folder)))
    told = [
        f"\n{result.sentence()}",
        f"It took {clock(time.monotonic() - began)}. The run lies in {folder}:",
        "  model.safetensors   the released weights",
        "  certificate.html    what is guaranteed, in plain words",
        "  certificate.json    the same for programs",
        "  report.html         how the run went",
        f"Check the certificate at any time: discreet certificate {folder}",
    ]
    if not run.finished:
        told.append(f"Go on where it ended: discreet train --resume {folder}")
    console.print("\n".join(told), soft_wrap=True)
    if arguments.quiet:
        print(folder)
    return 0


@contextmanager
def _system_errors() -> Iterator[None]:
    """What the system refuses, told once."""
    before = threading.excepthook
    # TensorBoard's thread fails on its own, and the main thread is told of it as well: one line is enough.
    threading.excepthook = lambda failed: note(str(failed.exc_value))
    try:
        yield
    finally:
        threading.excepthook = before


def settings_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings of a job: the file's, overridden by those given on the command line."""
    settings = {} if arguments.config is None else read_toml(arguments.config)
    for name, value in vars(arguments).items():
        if value is not None and name not in _COMMAND:
            settings[name] = str(value) if isinstance(value, Path) else value
    if arguments.no_evaluation:
        settings["evaluation"] = False
    if arguments.no_tensorboard:
        settings["tensorboard"] = False
    if arguments.no_feature_cache:
        settings["feature_cache"] = False
    for name, option, texts in (
        ("feature_options", "--feature-option", arguments.feature_option),
        ("model_options", "--model-option", arguments.model_option),
    ):
        if texts:
            before = settings.get(name, {})
            if not isinstance(before, Mapping):
                raise UserError(f"{name} is {before!r}; it is a table of names and values")
            settings[name] = {**before, **pairs(option, texts)}
    settings.update(pairs("--set", arguments.set or []))
    return settings


def pairs(option: str, texts: list[str]) -> dict[str, Any]:
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


def _folder(output: Any, job: Job) -> Path:
    """The folder asked for, or the first free one of runs/DATA-1, runs/DATA-2 and so on."""
    if output is not None:
        if not isinstance(output, str) or not output:
            raise UserError(f"output is {output!r}; it is the name of a new folder")
        return Path(output)
    name, number = Path(job.data).resolve().name.split(".")[0] or "run", 1
    while (folder := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return folder

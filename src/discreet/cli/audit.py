"""`discreet audit`: what a training gives away at least, next to what is certified at most."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from discreet.cli.terminal import terminal
from discreet.cli.train import pairs
from discreet.errors import UserError
from discreet.jobs.job import Job, job_of_run, read_toml

if TYPE_CHECKING:
    from discreet.recipes import FirstOrder

_OF_A_JOB = ("recipe", "preset", "epsilon", "delta", "accounting", "model", "features")
_EXAMPLES = 60_000


def audit(arguments: argparse.Namespace) -> int:
    """Carry out an audit."""
    if arguments.by == "duplicates":
        return _duplicates(arguments)
    if arguments.by == "canaries":
        return _canaries(arguments)
    return _attack(arguments)


def _canaries(arguments: argparse.Namespace) -> int:
    from discreet.accounting import Accounting, Budget
    from discreet.audit.game import CanaryGame, play, sampled_as
    from discreet.audit.page import canary_page

    recipe, examples, budget, accounting = _audited(arguments)
    total = arguments.canaries + 1_000
    game = CanaryGame(
        recipe=sampled_as(recipe, of=examples, to=total),
        budget=Budget(**budget),
        accounting=Accounting(accounting),
        canaries=arguments.canaries,
        confidence=arguments.confidence,
        seed=arguments.seed,
    )
    console = terminal(quiet=arguments.json)
    folder = arguments.output or Path("audits") / recipe.name
    try:
        run = folder / f"run-{game.plan().digest()[:12]}-{game.seed}"
        found = play(game, folder=run, progress=_Telling(console, "release"))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the same command goes on from the last checkpoint") from None
    _write(folder, arguments.by, console, found.to_json(), canary_page(found))
    if arguments.json:
        print(json.dumps(found.to_json(), indent=2))
    console.print(found.sentence(), soft_wrap=True)
    return 1 if found.refuted else 0


def _attack(arguments: argparse.Namespace) -> int:
    from discreet.audit.attack import attack, split_for
    from discreet.audit.page import attack_page
    from discreet.audit.shadows import Subject

    subject = Subject(
        job=_job(arguments),
        records=arguments.records,
        private=not arguments.control,
        epochs=arguments.control_epochs,
        split=split_for(arguments.by),
        seed=arguments.seed,
    )
    console = terminal(quiet=arguments.json)
    kind = "-control" if arguments.control else ""
    folder = arguments.output or Path("audits") / f"{Path(subject.job.data).stem}{kind}"
    models = folder / f"models-{subject.split}"
    telling = _Telling(console, "model")
    console.print(f"models are kept in {models}; the same command goes on where it was stopped")
    report = attack(
        arguments.by,
        subject,
        folder=models,
        shadows=arguments.shadows,
        confidence=arguments.confidence,
        processes=arguments.processes,
        done=lambda done, of, seconds: telling.say(done, of, seconds),
    )
    _write(folder, arguments.by, console, report.to_json(), attack_page(report))
    if arguments.json:
        print(json.dumps(report.to_json(), indent=2))
    console.print(report.table(), soft_wrap=True)
    return 0


def _duplicates(arguments: argparse.Namespace) -> int:
    from discreet.audit.duplicates import duplicates

    found = duplicates(_job(arguments).load().train)
    print(found.sentence())
    print("This was read off the records and is for you alone; it is written to no file.")
    if found.largest > 1:
        print(
            "The certificate is for one record. For one that occurs so often ask: "
            f"discreet certificate RUN --copies {found.largest}"
        )
    return 0


def _audited(arguments: argparse.Namespace) -> tuple[FirstOrder, int, dict[str, float], str]:
    """The recipe, the number of records that its batches refer to, the budget and the accounting."""
    from discreet.recipes import find

    subject = arguments.subject
    if subject is None:
        job = Job.from_settings({"data": "records made for the audit", **_settings(arguments)})
        return job.chosen_recipe(), arguments.examples or _EXAMPLES, _budget(job), job.accounting
    if _is_run(Path(subject)):
        from discreet.training.files import read_json
        from discreet.training.folder import RunFolder

        if _settings(arguments):
            raise UserError("a run is audited as it was made: give no settings beside its folder")
        plan = read_json(RunFolder.open(Path(subject)).settings)["plan"]
        recipe = find(plan["recipe"]).from_json(plan["settings"])
        return recipe, plan["sampler"]["examples"], plan["budget"], plan["accounting"]
    job = _job(arguments)
    return job.chosen_recipe(), arguments.examples or len(job.load().train), _budget(job), job.accounting


def _is_run(path: Path) -> bool:
    return (path / "run.json").is_file()


def _budget(job: Job) -> dict[str, float]:
    return {"epsilon": job.epsilon, "delta": job.delta}


def _job(arguments: argparse.Namespace) -> Job:
    """The training that the subject stands for: a run's, a configuration's, or one on named data."""
    subject, settings = arguments.subject, _settings(arguments)
    if subject is None:
        raise UserError("name the data: a data set, a file, a folder, a run, or a TOML file with settings")
    path = Path(subject)
    if _is_run(path):
        return job_of_run(path)
    if path.suffix == ".toml":
        file = read_toml(path)
        file.pop("output", None)
        return Job.from_settings({**file, **settings})
    return Job.from_settings({"data": subject, **settings})


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    given = {name: getattr(arguments, name) for name in _OF_A_JOB if getattr(arguments, name) is not None}
    if arguments.data_folder is not None:
        given["data_folder"] = str(arguments.data_folder)
    return {**given, **pairs("--set", arguments.set or [])}


def _write(folder: Path, name: str, console: Console, record: dict[str, Any], page: str) -> None:
    from discreet.training.files import write_json, write_text

    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / f"{name}.json", record)
    write_text(folder / f"{name}.html", page)
    console.print(f"written to {folder}: {name}.json, {name}.html")


class _Telling:
    """How far an audit is, and how long the rest will take; ten times at most where nobody looks."""

    def __init__(self, console: Console, unit: str) -> None:
        self._console, self._unit, self._start = console, unit, time.monotonic()
        self._told = 0

    def __call__(self, done: int, of: int) -> None:
        self.say(done, of, (time.monotonic() - self._start) * (of - done) / max(1, done))

    def say(self, done: int, of: int, seconds: float) -> None:
        from discreet.jobs.telling import clock

        if 10 * done // of > self._told or self._unit == "model":
            self._told = 10 * done // of
            self._console.print(f"{self._unit} {done}/{of}  {clock(seconds)} left", highlight=False)

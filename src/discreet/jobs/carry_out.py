"""A job, made ready and carried out: what the command line does, for anybody to call."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from torch import nn

from discreet.data import Records, Splits
from discreet.errors import UserError
from discreet.jobs.job import Job
from discreet.models import ModelSpec
from discreet.noise.key import RunKey
from discreet.plan import Plan
from discreet.training import fit
from discreet.training.outcome import Result, conclude
from discreet.training.progress import Listener, TensorBoard, Terminal
from discreet.training.run import Run


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A job with its records read, its network built and its plan made; nothing is written yet."""

    job: Job
    splits: Splits
    spec: ModelSpec
    model: nn.Module
    plan: Plan

    @property
    def evaluated(self) -> Records | None:
        """The records that accuracy is taken on, where that is wanted."""
        return self.splits.public if self.job.evaluation else None

    def start(self, folder: Path | None) -> Run:
        """Begin in a new folder; without one, all that would be refused is refused, and nothing is written."""
        return fit.start(
            self.model,
            self.splits.train,
            self.plan,
            public=self.evaluated,
            folder=folder,
            seed=self.job.seed,
            microbatch=self.job.microbatch,
            checkpoint_seconds=self.job.checkpoint_seconds,
            notes={
                "job": self.job.to_json(),
                "model": self.spec.as_json(),
                "evaluation": self.splits.declared if self.job.evaluation else None,
            },
        )

    def resume(self, folder: Path) -> Run:
        """Go on in the folder of an interrupted run."""
        return fit.resume(
            folder,
            self.model,
            self.splits.train,
            self.plan,
            public=self.evaluated,
            microbatch=self.job.microbatch,
            checkpoint_seconds=self.job.checkpoint_seconds,
        )


def prepare(job: Job) -> Prepared:
    """Read the records, build the network, make the plan."""
    # What can be refused without reading the records is refused first.
    budget, recipe, accounting = job.budget(), job.chosen_recipe(), job.chosen_accounting()
    job.feature_map()
    device = _device(job.device)
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    splits = job.load()
    plan = recipe.plan(len(splits.train), budget, accounting=accounting)
    job.require_secret_trials(plan)
    spec = job.network(splits)
    # The first weights are public; in a seeded run they repeat, in any other they come from a key of their own.
    key = RunKey.secret() if job.seed is None else RunKey.from_seed(job.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(key.stream("weights", 0).words(1)[0]))
        model = _built(spec).to(device)
    return Prepared(job=job, splits=splits, spec=spec, model=model, plan=plan)


def carry_out(prepared: Prepared, run: Run, console: Console) -> Result:
    """Make all releases that are left, tell of them, and conclude."""
    job, public = prepared.job, prepared.evaluated
    assert run.folder is not None, "a job is carried out in a folder"
    listeners: list[Listener] = []
    if job.tensorboard:
        listeners.extend(_tensorboard(run.folder.tensorboard))
    if not console.quiet:
        done = run.state.releases
        listeners.append(
            Terminal(
                console,
                releases=run.plan.releases,
                budget=run.plan.budget.epsilon,
                done=done,
                unit=run.plan.unit,
            )
        )
    try:
        fit.drive(run, public=public, listeners=listeners, marks=job.marks)
        return conclude(run)
    finally:
        run.let_go()


def _tensorboard(folder: Path) -> list[Listener]:
    try:
        return [TensorBoard(folder)]
    except ImportError:
        return []


def _built(spec: ModelSpec) -> nn.Module:
    """The network; options that leave it without some of its weights are refused, as torch's error names none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = spec.build()
            problem = (
                "one of its layers is empty" if any(not each.numel() for each in model.parameters()) else ""
            )
        except RuntimeError as error:
            problem = str(error).splitlines()[0]
    if problem:
        told = ", ".join(f"{name}={value!r}" for name, value in spec.options.items()) or "its defaults"
        raise UserError(f"model {spec.name} cannot be built with {told} for {spec.input_shape}: {problem}")
    return model


def _device(name: str | None) -> torch.device:
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device {name!r} cannot be used here: {str(error).splitlines()[0]}") from None
    return device

"""A job, made ready and carried out: what the command line does, for anybody to call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from torch import nn

from discreet.accounting.rounding import rounded_up
from discreet.data import Splits
from discreet.errors import UserError
from discreet.models import ModelSpec
from discreet.noise.key import RunKey
from discreet.plan import Plan
from discreet.training import fit
from discreet.jobs.job import Job
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

    def start(self, folder: Path) -> Run:
        """Begin in a new folder."""
        return fit.start(
            self.model,
            self.splits.train,
            self.plan,
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
            microbatch=self.job.microbatch,
            checkpoint_seconds=self.job.checkpoint_seconds,
        )


def prepare(job: Job) -> Prepared:
    """Read the records, build the network, make the plan."""
    budget, recipe, accounting = job.budget(), job.chosen_recipe(), job.chosen_accounting()
    # What can be refused without reading the records is refused first.
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    splits = job.load()
    plan = recipe.plan(len(splits.train), budget, accounting=accounting)
    spec = job.network(splits)
    # The first weights are public; in a seeded run they repeat, in any other they come from a key of their own.
    key = RunKey.secret() if job.seed is None else RunKey.from_seed(job.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(key.stream("weights", 0).words(1)[0]))
        model = spec.build().to(_device(job.device))
    return Prepared(job=job, splits=splits, spec=spec, model=model, plan=plan)


def carry_out(prepared: Prepared, run: Run, console: Console) -> Result:
    """Make all releases that are left, tell of them, and conclude."""
    job, public = prepared.job, prepared.splits.public if prepared.job.evaluation else None
    assert run.folder is not None, "a job is carried out in a folder"
    listeners: list[Listener] = []
    if job.tensorboard:
        listeners.extend(_tensorboard(run.folder.tensorboard))
    if not console.quiet:
        done = run.state.releases
        listeners.append(
            Terminal(console, releases=run.plan.releases, budget=run.plan.budget.epsilon, done=done)
        )
    fit.drive(run, public=public, listeners=listeners, marks=job.marks)
    return conclude(run)


def describe_plan(prepared: Prepared) -> str:
    """The plan in a few lines."""
    plan, data = prepared.plan, prepared.splits.description
    evaluated = (
        f"accuracy on {len(prepared.splits.public)} records ({prepared.splits.declared})"
        if (prepared.splits.public is not None and prepared.job.evaluation)
        else "no evaluation records: no accuracy is shown"
    )
    parameters = sum(p.numel() for p in prepared.model.parameters() if p.requires_grad)
    costs = plan.costs()
    lines = [
        f"{plan.recipe} on {data.name}",
        f"  records         {plan.sampler.examples}, {data.classes} classes; {evaluated}",
        f"  model           {prepared.spec.name}, {parameters:,} parameters",
        f"  releases        {plan.releases}, Poisson batches of {plan.sampler.expected_batch_size:g} on average "
        f"(sample rate {plan.sampler.rate:.4g})",
        f"  noise           multiplier {plan.noise.multiplier:.4f} at clip norm {plan.clipping.rule.sensitivity:g}",
        f"  budget          epsilon {plan.budget.epsilon:g} at delta {plan.budget.delta:g}",
        f"  certified       epsilon {rounded_up(costs['visible'])} visible, {rounded_up(costs['hidden'])} hidden "
        f"(the run is held to {plan.accounting})",
        f"  claimed         epsilon {rounded_up(costs['claimed'])} by the method's own formula; not a guarantee",
    ]
    return "\n".join(lines)


def _tensorboard(folder: Path) -> list[Listener]:
    try:
        return [TensorBoard(folder)]
    except ImportError:
        return []


def _device(name: str | None) -> torch.device:
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device {name!r} cannot be used here: {str(error).splitlines()[0]}") from None
    return device

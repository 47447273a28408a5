"""From a model, records, a recipe and a budget to a private model with its certificate."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from discreet.accounting import Accounting, Budget
from discreet.accounting.log import EventLog
from discreet.data import Records
from discreet.errors import CorruptFile, UserError
from discreet.gradients.batches import Batch, synthetic_like
from discreet.gradients.choosing import NO_KERNELS
from discreet.gradients.engine import GradientEngine, Method
from discreet.gradients.layout import FlatLayout
from discreet.gradients.native import VARIABLE
from discreet.noise.key import RunKey
from discreet.plan import Plan
from discreet.training import checkpoint
from discreet.training.evaluate import PublicData, accuracy
from discreet.training.files import read_json, write_json
from discreet.training.folder import RunFolder
from discreet.training.outcome import Result, conclude
from discreet.training.progress import JsonLines, Listener, Progressing
from discreet.training.remembering import told_of_memory
from discreet.training.run import Release, Run, on_device
from discreet.training.trials import told_of_trials

if TYPE_CHECKING:
    from discreet.recipes import FirstOrder

Loss = Callable[[Any, Tensor], Tensor]

_FORMAT = 1
_REHEARSED = 256


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """The cross-entropy of each record."""
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def fit(
    model: nn.Module,
    data: Records,
    recipe: FirstOrder,
    budget: Budget,
    *,
    loss: Loss = cross_entropy,
    public: PublicData | None = None,
    folder: Path | str | None = None,
    seed: int | None = None,
    accounting: Accounting = Accounting.VISIBLE,
    microbatch: int | None = None,
    listeners: Sequence[Listener] = (),
    marks: int = 20,
) -> Result:
    """Train `model` privately, in place, and certify what the result gives away.

    Args:
        model: the network, on the device that is to compute.
        data: the private records.
        recipe: how to train.
        budget: the most that may be spent.
        loss: the loss of each record, as a function of outputs and targets.
        public: records to take accuracy on: public, or declared not to be private.
        folder: a new folder for event log, checkpoints, released model and certificate. Without one the run lives
            in memory and cannot be resumed.
        seed: makes the run repeatable, for research; the certificate then is no guarantee.
        accounting: what the adversary is taken to see.
        microbatch: records whose gradients are held at once; as memory allows, when left out.
        listeners: who is told of progress.
        marks: how often progress is told and accuracy taken.
    """
    plan = recipe.plan(len(data), budget, accounting=accounting)
    run = start(model, data, plan, loss=loss, public=public, folder=folder, seed=seed, microbatch=microbatch)
    try:
        drive(run, public=public, listeners=listeners, marks=marks)
        return conclude(run)
    finally:
        run.let_go()


def start(
    model: nn.Module,
    data: Records,
    plan: Plan,
    *,
    loss: Loss = cross_entropy,
    public: PublicData | None = None,
    folder: Path | str | None = None,
    seed: int | None = None,
    method: Method = "auto",
    microbatch: int | None = None,
    checkpoint_seconds: float = 30.0,
    notes: dict[str, Any] | None = None,
) -> Run:
    """A run to iterate over: each item is one release. `conclude` ends it and gives the certificate.

    Everything that can be refused is refused here, before a folder is made or anything is charged.

    Args:
        model: as in `fit`, like all that are not named here.
        data: the private records.
        plan: what to do, as `recipe.plan(len(data), budget)` gives it.
        loss: the loss of each record.
        public: public records, for a recipe that follows the accuracy on them.
        folder: a new folder for the run.
        seed: makes the run repeatable.
        method: how the gradient engine computes; all methods give the same sums.
        microbatch: records whose gradients are held at once.
        checkpoint_seconds: time between two checkpoints; 0 saves after every release.
        notes: plain values to keep in the folder with the plan (how the model and the data are found again).
    """
    data.require_trainable()
    if plan.sampler.examples != len(data):
        raise UserError(f"the plan is for {plan.sampler.examples} records, and there are {len(data)}")
    if plan.budget.delta >= 1 / len(data):
        warnings.warn(
            f"delta {plan.budget.delta:g} is not below 1/n = {1 / len(data):.2g}: such a guarantee would allow whole "
            "records to be published; choose a smaller one",
            stacklevel=2,
        )
    engine = GradientEngine(model, loss, FlatLayout.of(model), method=method, microbatch=microbatch)
    rehearse(engine, plan, data)
    plan.optimizer.build([nn.Parameter(torch.zeros(1))])
    key = RunKey.secret() if seed is None else RunKey.from_seed(seed)
    if folder is None:
        return Run(plan, model, data, engine=engine, key=key, public=public)
    place, log = RunFolder.create(Path(folder)), None
    try:
        key.save(place.key)
        write_json(place.settings, {"format": _FORMAT, "plan": plan.to_json(), "notes": notes or {}})
        log = EventLog.create(place.path, plan.header(secure_noise=key.is_secret))
        run = Run(plan, model, data, engine=engine, key=key, log=log, folder=place, public=public)
        run.checkpoint_seconds = checkpoint_seconds
        run.save()
    except BaseException:
        if log is not None:
            log.close()
        place.discard()
        raise
    return run


def resume(
    folder: Path | str,
    model: nn.Module,
    data: Records,
    plan: Plan,
    *,
    loss: Loss = cross_entropy,
    public: PublicData | None = None,
    method: Method = "auto",
    microbatch: int | None = None,
    checkpoint_seconds: float = 30.0,
) -> Run:
    """A run taken up where it was interrupted, with the arguments that it was started with.

    What was charged and not yet saved is made again with the draws that it had, and is not charged twice.
    """
    place = RunFolder.open(Path(folder))
    if read_json(place.settings)["plan"] != json.loads(json.dumps(plan.to_json())):
        raise UserError(
            f"{place.path} was started with other settings or other data; it is resumed with the same ones"
        )
    if not place.key.is_file():
        raise UserError(f"{place.path} has ended: its key is gone, and it cannot be resumed")
    facts = checkpoint.peek(place.checkpoint)
    if facts["threads"] != torch.get_num_threads() or facts["torch"] != torch.__version__:
        warnings.warn(
            f"the run was started with {facts['threads']} threads of torch {facts['torch']}: the last digits of the "
            "weights may differ from those of an uninterrupted run",
            stacklevel=2,
        )
    engine = GradientEngine(
        model, loss, FlatLayout.of(model), method=method, microbatch=microbatch, choices=facts["choices"]
    )
    rehearse(engine, plan, data)
    _require_kernels(facts["choices"].get("kernels", NO_KERNELS), engine.choices["kernels"])
    key = RunKey.load(place.key)
    if key.fingerprint != facts["key"]:
        raise CorruptFile(
            f"{place.key} is not the key that the run began with; its releases cannot be made again"
        )
    log = EventLog.resume(place.path)
    try:
        if log.charged < facts["releases"]:
            raise CorruptFile(
                f"{log.path} holds {log.charged} charges, and {place.checkpoint} was saved after {facts['releases']}: "
                "the log has lost its end, or it belongs to another run"
            )
        run = Run(plan, model, data, engine=engine, key=key, log=log, folder=place, public=public)
        run.checkpoint_seconds = checkpoint_seconds
        for what, told in (
            ("records", "other records"),
            ("frozen", "a model with other frozen weights or buffers"),
        ):
            if run.facts()[what] != facts[what]:
                raise UserError(f"{place.path} was started with {told}; it is resumed with the same ones")
        checkpoint.load(place.checkpoint, run.state, plan=plan.digest())
    except BaseException:
        log.close()
        raise
    return run


def _require_kernels(began: str, found: str) -> None:
    """Refuse to go on with other compiled kernels than the run began with, unless that is asked for."""
    if began == found:
        return
    told = (
        "the run was started with compiled kernels that cannot be had here now (another compiler, processor or "
        "version, or none)"
    )
    differ = "the last digits of the weights may differ from those of an uninterrupted run"
    if VARIABLE not in os.environ:
        raise UserError(f"{told}; {VARIABLE}=on or {VARIABLE}=off resumes it all the same, but {differ}")
    warnings.warn(f"{told}: {differ}", stacklevel=3)


def rehearse(engine: GradientEngine, plan: Plan, data: Records) -> None:
    """Send made-up records of the data's form through the engine: a model that cannot be trained says so now.

    The engine also chooses its ways here, by records that are nobody's.
    """
    records = min(round(plan.sampler.expected_batch_size), _REHEARSED)
    inputs, targets = made_up(data, records, engine.layout.device)
    engine.clipped_sum(inputs, targets, plan.clipping.at(0, plan.releases), engine.layout.zeros())
    if plan.selecting is not None:
        engine.losses(inputs, targets)


def made_up(data: Records, records: int, device: torch.device) -> tuple[Batch, Batch]:
    """Random records of the form that the data have; of the data themselves only the form is looked at."""
    generator = torch.Generator().manual_seed(0)
    inputs, targets = data.batch(torch.tensor([0]))
    return on_device(synthetic_like(inputs, records, generator), device), on_device(
        synthetic_like(targets, records, generator), device
    )


def drive(
    run: Run,
    *,
    public: PublicData | None = None,
    listeners: Sequence[Listener] = (),
    marks: int = 20,
) -> None:
    """Make all releases that are left, telling the listeners of each and, now and then, of accuracy."""
    if run.folder is not None:
        listeners = [JsonLines(run.folder.metrics), *listeners]
    since: list[Release] = []
    timed = not run.plan.hides_trials

    def mark(progress: Progressing) -> None:
        last = since[-1]
        with run.released_weights() as released:
            measured = None if public is None else accuracy(released, public)
        progress.mark(
            release=last.number,
            of=last.of,
            epsilon=last.epsilon,
            budget=run.plan.budget.epsilon,
            noise_multiplier=last.noise_multiplier,
            learning_rate=last.learning_rate,
            accuracy=measured,
            told={**told_of_trials(since), **told_of_memory(run, since)},
        )
        since.clear()

    with Progressing(list(listeners), releases=run.plan.releases, marks=marks, timed=timed) as progress:
        for release in run:
            progress.release(release.number)
            since.append(release)
            if progress.due(release.number):
                mark(progress)
        # Where a run ends before its plan does, its last release is told as well.
        if since:
            mark(progress)

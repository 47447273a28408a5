"""Models trained for an attack, side by side and each kept on disk, so that an attack goes on where it stopped.

Model 0 is the target, the others are the adversary's. Which records a model is trained on, its first weights
and its noise are functions of (audit key, number of the model).
"""

from __future__ import annotations

import json
import math
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from discreet.audit.game import sampled_as
from discreet.audit.outputs import Outputs, outputs_of
from discreet.data import Records
from discreet.errors import UserError
from discreet.jobs.cores import cores
from discreet.jobs.job import Job
from discreet.noise.key import RunKey
from discreet.plan import Plan
from discreet.training import fit
from discreet.training.files import read_json, write_json
from discreet.training.outcome import conclude

Split = Literal["halves", "sixths"]
Done = Callable[[int, int, float], None]

_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is attacked: how its models are trained, and on what.

    Args:
        job: data, recipe, network and budget, as for a training. Batches keep their share of the records.
        records: only so many records, drawn by the key; all when left out.
        private: train by the recipe. Otherwise by plain Adam without clipping or noise: the control, on which an
            attack has to show that it works.
        epochs: of the control.
        split: "halves" puts each record into each model by a fair coin, as LiRA and RMIA need it. "sixths" makes two
            models of disjoint records: two sixths to train the target, one for its others, and the same for one shadow.
        seed: the audit's key.
    """

    job: Job
    records: int | None = None
    private: bool = True
    epochs: int = 40
    split: Split = "halves"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise UserError(f"epochs is {self.epochs}; the control is trained for at least 1")
        if self.records is not None and self.records < 60:
            raise UserError(f"records is {self.records}; an attack needs at least 60")

    def to_json(self) -> dict[str, Any]:
        """Plain values, as they are read back from a file."""
        plain: dict[str, Any] = json.loads(json.dumps({**asdict(self), "job": self.job.to_json()}))
        return plain

    @property
    def key(self) -> RunKey:
        """The audit's key."""
        return RunKey.from_seed(self.seed)

    def pool(self) -> Records:
        """The records that models are trained on or asked about."""
        train = self.job.load().train
        if self.records is None or self.records >= len(train):
            return train
        chosen = self.key.stream("audit pool", 0).words(len(train)).argsort()[: self.records]
        return train.select(chosen.sort().values)

    def member(self, number: int, records: int) -> Tensor:
        """Which of the records a model is trained on."""
        if self.split == "halves":
            return (self.key.stream("audit members", number).words(records) & 1).bool()
        return self._sixths(number, records, 2)

    def asked(self, number: int, records: int) -> Tensor:
        """Which records a model is attacked on: all, or in "sixths" the three that are its own."""
        if self.split == "halves":
            return torch.ones(records, dtype=torch.bool)
        return self._sixths(number, records, 3)

    def _sixths(self, number: int, records: int, count: int) -> Tensor:
        """The first so many of the three sixths that are a model's own."""
        order = self.key.stream("audit members", 0).words(records).argsort()
        begin = 3 * number * records // 6
        chosen = torch.zeros(records, dtype=torch.bool)
        chosen[order[begin : begin + count * records // 6]] = True
        return chosen

    def plan(self, records: int, members: int) -> Plan:
        """The private training of a model on so many of the records: batches keep their share."""
        recipe = sampled_as(self.job.chosen_recipe(), of=records, to=members)
        return recipe.plan(members, self.job.budget(), accounting=self.job.chosen_accounting())

    def number_for(self, purpose: str, number: int) -> int:
        """A seed of a model's own for one purpose."""
        return int(self.key.stream(purpose, number).words(1)[0]) & (2**62 - 1)


def train(subject: Subject, pool: Records, number: int) -> Outputs:
    """Train one model, and ask it about all records."""
    member = subject.member(number, len(pool))
    chosen = pool.select(member.nonzero().flatten())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(subject.number_for("audit weights", number))
        model = subject.job.network(_only(pool)).build()
    if subject.private:
        run = fit.start(
            model, chosen, subject.plan(len(pool), len(chosen)), seed=subject.number_for("audit run", number)
        )
        fit.drive(run)
        conclude(run)
    else:
        _train_plainly(model, chosen, epochs=subject.epochs, seed=subject.number_for("audit run", number))
    return outputs_of(model, pool, member)


def _only(pool: Records) -> Any:
    from discreet.data import Splits

    return Splits(train=pool)


def _train_plainly(model: nn.Module, records: Records, *, epochs: int, seed: int) -> None:
    """Adam on shuffled batches, until the network knows its records by heart."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.train()
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(records), generator=generator), 64):
            inputs, targets = records.batch(rows)
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(model(inputs), targets))
            optimizer.step()
    model.eval()


class Shadows:
    """The models of an attack, in a folder.

    Args:
        subject: how they are trained.
        folder: where they are kept. One that holds models of another subject is refused.
        count: how many, the target included.
    """

    def __init__(self, subject: Subject, folder: Path, count: int) -> None:
        if count < 2:
            raise UserError(f"there are {count} models; an attack needs the target and at least one shadow")
        self.subject, self.folder, self.count = subject, folder, count
        folder.mkdir(parents=True, exist_ok=True)
        facts, path = {"format": _FORMAT, "subject": subject.to_json()}, folder / "subject.json"
        if path.exists() and read_json(path) != facts:
            raise UserError(f"{folder} holds models of another subject; choose another folder")
        write_json(path, facts)

    def path(self, number: int) -> Path:
        """Where the outputs of one model lie."""
        return self.folder / f"model-{number:04d}.npz"

    @property
    def missing(self) -> list[int]:
        """The models that are still to be trained."""
        return [number for number in range(self.count) if not self.path(number).exists()]

    def train(self, *, processes: int | None = None, done: Done | None = None) -> None:
        """Train what is missing. What is finished stays, whatever happens.

        Args:
            processes: how many at a time; as many as there are cores when left out.
            done: told of how many models there are, of how many, and the seconds that the rest will take.
        """
        missing, began = self.missing, time.monotonic()
        workers = max(1, min(processes or cores(), len(missing)))
        for finished, _ in enumerate(self._trained(missing, workers), start=1):
            if done is not None:
                rest = len(missing) - finished
                seconds = (time.monotonic() - began) / finished * math.ceil(rest / workers) * workers
                done(self.count - rest, self.count, seconds)

    def outputs(self) -> list[Outputs]:
        """What all models say, the target first."""
        return [Outputs.load(self.path(number)) for number in range(self.count)]

    def _trained(self, missing: list[int], workers: int) -> Iterator[int]:
        tasks = [(self.subject, number, self.path(number)) for number in missing]
        if workers == 1:
            yield from map(_train_and_keep, tasks)
            return
        context = multiprocessing.get_context("spawn")
        with context.Pool(workers, initializer=_begin_worker) as pool:
            # Leaving the block by an exception, Ctrl-C among them, ends the workers.
            yield from pool.imap_unordered(_train_and_keep, tasks)


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)


@lru_cache(maxsize=1)
def _pool_of(text: str) -> Records:
    record = json.loads(text)
    return Subject(**{**record, "job": Job.from_json(record["job"])}).pool()


def _train_and_keep(task: tuple[Subject, int, Path]) -> int:
    subject, number, path = task
    train(subject, _pool_of(json.dumps(subject.to_json(), sort_keys=True)), number).save(path)
    return number

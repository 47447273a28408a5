"""The loop: charge, draw, clip and sum, add noise, step. One turn of it is one release."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn

from discreet.accounting.filter import RenyiFilter, open_filter
from discreet.errors import BudgetExhausted, UserError
from discreet.gradients.engine import ClipReport, GradientEngine
from discreet.gradients.layout import trainable_parameters
from discreet.noise.gaussian import Released, add_gaussian_
from discreet.noise.key import RunKey
from discreet.plan import Plan
from discreet.schedules import UNMOVED
from discreet.training import checkpoint
from discreet.training.evaluate import PublicData
from discreet.training.fingerprint import of_frozen, of_records
from discreet.training.folder import RunFolder
from discreet.training.odometer import Odometer
from discreet.training.state import TrainState
from discreet.training.trials import Trials, Turn

if TYPE_CHECKING:
    from discreet.accounting.log import EventLog
    from discreet.data import Description


_CHARGED_AT_ONCE = 16


class Data(Protocol):
    """Records by index."""

    def __len__(self) -> int: ...

    @property
    def description(self) -> Description:
        """What is known of the records."""
        ...

    @property
    def targets(self) -> Tensor:
        """The targets of all records."""
        ...

    def batch(self, indices: Tensor) -> tuple[Any, Tensor]:
        """Inputs and targets of the records at `indices`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Release:
    """What is known to everybody after a release.

    Attributes:
        number: how many releases were made; rejected trials count where their rejection is seen and charged.
        of: how many there will be, at most.
        epsilon: an upper bound on what they cost.
        noise_multiplier: sigma in force.
        learning_rate: eta in force.
        updated: whether the weights moved; always, unless a gate rejected the candidate or lets it wait.
        updates: how often the weights have moved.
        accepted: how many candidates have passed the gate, where there is one.
        trials: how many candidates there were, where there is a gate and its rejections are seen.
        score: the noisy score of the candidate, where its release was charged.
        remembered: figures about the memory by name, where the plan has one.
    """

    number: int
    of: int
    epsilon: float
    noise_multiplier: float
    learning_rate: float
    updated: bool = True
    updates: int = 0
    accepted: int | None = None
    trials: int | None = None
    score: float | None = None
    remembered: dict[str, float] = field(default_factory=dict)


class Run(AbstractContextManager["Run"]):
    """A run in progress: iterate over it, and each item is one release.

    Guarantee: the filter is asked, and the charge is on disk, before a release's records are drawn. All randomness
    is a function of the run's key and the release's number, so a run that is resumed makes the same releases again
    and no others.

    Args:
        plan: what to do.
        model: the network; its weights are the start, and are moved in place.
        data: the private records.
        engine: where clipped sums of the model's gradients come from.
        key: the randomness.
        log: where charges are written, and those of an interrupted run are found; closed with the run.
        folder: where to save the state; without one the run lives in memory.
        public: public records, for a gate that looks at them.

    Attributes:
        filter: asked before every release; a release that it has charged before costs nothing again.
        checkpoint_seconds: at least so much time lies between two checkpoints; 0 saves after every release.
        stop_requested: set it, and the run ends after the release that is being made.
    """

    def __init__(
        self,
        plan: Plan,
        model: nn.Module,
        data: Data,
        *,
        engine: GradientEngine,
        key: RunKey,
        log: EventLog | None = None,
        folder: RunFolder | None = None,
        public: PublicData | None = None,
    ) -> None:
        self.plan, self.model, self.data, self.key = plan, model, data, key
        self.engine, self.layout = engine, engine.layout
        self.state = TrainState.of(
            model,
            self.layout,
            plan.optimizer,
            averaged=plan.average is not None,
            buffered=_room(plan),
            memory=plan.memory,
        )
        self.device = self.state.parameters.device
        self.stop_requested = False
        self.folder, self.log = folder, log
        promise = plan.header(secure_noise=key.is_secret) if log is None else log.history.header
        self.filter = open_filter(promise, log)
        self.odometer = Odometer(plan)
        self._trials = None if plan.selecting is None else Trials(self, plan.selecting, public)
        self._exhausted = False
        self.checkpoint_seconds = 30.0
        self._last_checkpoint = time.monotonic()
        self._digest = plan.digest()
        self._records, self._frozen = of_records(data, key), of_frozen(model)
        self._open, self._half_made = True, False

    @property
    def finished(self) -> bool:
        """Whether every planned release has been made, or what was to end the run has come."""
        if self._exhausted or self.state.releases >= self.plan.releases:
            return True
        return self._trials is not None and self._trials.ended

    def __iter__(self) -> Iterator[Release]:
        """Make the releases that are left, one per item, until the plan's end or `stop_requested`.

        Where the plan adapts, the filter ends the run: it refuses the release that would exceed the budget.
        """
        while not (self.finished or self.stop_requested):
            try:
                release = self.release()
            except BudgetExhausted:
                if not self.plan.adapts:
                    raise
                self._exhausted = True
                self.save()
                return
            yield release

    def release(self) -> Release:
        """Make the next release.

        A release that fails half-way may have moved the weights and not the counter. The next one would then put the
        same noise on another sum, so the run refuses to go on; its checkpoint is whole.
        """
        self._require_whole()
        number = self.state.releases
        self._charge(number)
        self._half_made = True
        phase = UNMOVED if self.state.selection is None else self.state.selection.phase
        remembered: dict[str, float] = {}
        if self._trials is None:
            released, _ = self.private_gradient(number)
            remembered = self._blend(released)
            self.propose(number)
            self.state.settle(average=self.plan.average)
            turn = Turn(updated=True)
        else:
            turn = self._trials.turn(number)
        self.state.releases += 1
        self._half_made = False
        self._save_now_and_then()
        return Release(
            number=number + 1,
            of=self.plan.releases,
            epsilon=self.spent(number + 1),
            noise_multiplier=self.plan.noise.multiplier_at(number) * phase.noise,
            learning_rate=self.plan.learning_rate_at(number) * phase.learning_rate,
            updated=turn.updated,
            updates=self.state.updates,
            accepted=None if self.state.selection is None else self.state.selection.accepted,
            trials=None if self._trials is None else self._trials.seen,
            score=turn.score,
            remembered=remembered,
        )

    def spent(self, releases: int) -> float:
        """An upper bound on the epsilon of so many releases."""
        if isinstance(self.filter, RenyiFilter):
            return self.filter.spent(self.plan.budget.delta, releases)
        return self.odometer.spent(releases, exactly=self.finished)

    def _charge(self, number: int) -> None:
        """Have the release paid for, and with it the next few of the same event.

        A charge waits for the disk, which can take as long as a small release. One charge for several of them costs
        nothing in the end: all are in the plan, and a run that was interrupted uses up what it had paid for. Where
        the plan adapts, what comes next is not known yet.
        """
        event = self.plan.event(number) if self._trials is None else self._trials.event(number)
        count = 1
        if number >= self.filter.charged and not self.plan.adapts:
            last = min(number + _CHARGED_AT_ONCE, self.plan.releases)
            while number + count < last and self.plan.event(number + count) == event:
                count += 1
        self.filter.charge(number, event, count)

    def private_gradient(
        self, number: int, trial: int = 0, *, noise: float = 1.0
    ) -> tuple[Released, ClipReport]:
        """Put the noisy mean gradient of a fresh batch into the state; what the clipping saw stays private.

        With a memory the clipped sum has its public weight, as the plan's event says.

        Args:
            number: the release.
            trial: which of the release's trials.
            noise: a factor on the planned noise multiplier, where the plan adapts.
        """
        rule = self.plan.clipping.at(number, self.plan.releases)
        indices = self.plan.sampler.draw(self.key.stream("batch", number, trial))
        report = self.engine.clipped_sum(*self.batch(indices), rule, self.state.gradient)
        if self.plan.sum_weight != 1.0:
            self.state.gradient.mul_(self.plan.sum_weight)
        stddev = self._stddev(number, noise)
        released = add_gaussian_(self.state.gradient, stddev, self.key.stream("noise", number, trial))
        released.div_(self.plan.sampler.expected_batch_size)
        return released, report

    def _blend(self, released: Released) -> dict[str, float]:
        """Blend the release in the state with those that are remembered; figures about the memory."""
        if self.plan.memory is None or self.state.recollection is None:
            return {}
        # The weights follow from the start, which is public, and from releases.
        weights = Released(self.state.parameters)
        return self.plan.memory.blend_(released, self.state.recollection, weights=weights)

    def propose(self, number: int, *, noise: float = 1.0, learning_rate: float = 1.0) -> None:
        """Move the weights by the noisy gradient in the state; the factors are those of an adapting plan."""
        self.state.propose(
            learning_rate=self.plan.learning_rate_at(number) * learning_rate,
            noise_variance=(self._stddev(number, noise) / self.plan.sampler.expected_batch_size) ** 2,
        )

    def batch(self, indices: Tensor) -> tuple[Any, Tensor]:
        """Inputs and targets of the records at `indices`, where the model is."""
        inputs, targets = self.data.batch(indices)
        return on_device(inputs, self.device), targets.to(self.device)

    def _stddev(self, number: int, noise: float) -> float:
        """The standard deviation of the noise in the sum."""
        rule = self.plan.clipping.at(number, self.plan.releases)
        return self.plan.noise.multiplier_at(number) * noise * rule.sensitivity

    def claimed_epsilon(self) -> float | None:
        """What the method's paper would print for what was done, or is planned. Not a guarantee."""
        return self.plan.claimed() if self._trials is None else self._trials.claimed_epsilon()

    def save(self) -> None:
        """Write a checkpoint now."""
        self._require_whole()
        if self.folder is not None:
            checkpoint.save(self.folder.checkpoint, self.state, plan=self._digest, facts=self.facts())
            self._last_checkpoint = time.monotonic()

    def facts(self) -> dict[str, Any]:
        """What a resumed run has to know to compute the very same numbers."""
        return {
            "choices": self.engine.choices,
            "key": self.key.fingerprint,
            "records": self._records,
            "frozen": self._frozen,
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        }

    def _save_now_and_then(self) -> None:
        if self.finished or time.monotonic() - self._last_checkpoint >= self.checkpoint_seconds:
            self.save()

    @contextmanager
    def released_weights(self) -> Iterator[nn.Module]:
        """The model with the weights that a release would carry now: the average's, where the recipe has one."""
        self.layout.bind(self.model, self.state.released())
        try:
            yield self.model
        finally:
            self.layout.bind(self.model, self.state.parameters)

    def close(self) -> None:
        """Leave the model with the weights that are released, in tensors of its own, and let go of the folder."""
        self.layout.bind(self.model, self.state.released())
        for _, parameter in trainable_parameters(self.model):
            parameter.data = parameter.data.clone()
        self._open = False
        self.let_go()

    def let_go(self) -> None:
        """Let another process, or another attempt in this one, take the folder."""
        if self.log is not None:
            self.log.close()

    def _require_whole(self) -> None:
        if not self._open:
            raise UserError("the run is closed; start another one, or resume it from its folder")
        if self._half_made:
            raise UserError("the last release was broken off half-way; resume the run from its folder")

    def __exit__(self, *_: object) -> None:
        """Close the run."""
        self.close()


def _room(plan: Plan) -> int:
    """How many candidates can wait for each other; -1 where nothing is selected."""
    if plan.selecting is None:
        return -1
    return 0 if plan.selecting.buffer is None else plan.selecting.buffer.size


def on_device(inputs: Any, device: torch.device) -> Any:
    """A tensor, or a dictionary or tuple of tensors, moved."""
    if isinstance(inputs, Tensor):
        return inputs.to(device)
    if isinstance(inputs, dict):
        return {name: value.to(device) for name, value in inputs.items()}
    return tuple(value.to(device) for value in inputs)

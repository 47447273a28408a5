"""What a gate is asked, what it may look at, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from discreet.accounting import Event
    from discreet.gradients.engine import ClipReport
    from discreet.gradients.private import Private
    from discreet.noise.key import Stream
    from discreet.schedules import Phase


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """The mechanism that makes a candidate, as a gate has to know it to say what a trial costs.

    Attributes:
        sample_rate: q, of the training batch.
        noise_multiplier: sigma in force.
        number: which trial (`visible`) or release (`hidden`) it is, for gates with a schedule.
        phase: how far the gate's own parameters have moved.
    """

    sample_rate: float
    noise_multiplier: float
    number: int
    phase: Phase


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A gate's answer.

    Attributes:
        accepted: whether the candidate passes.
        score: the noisy score, lower being better, in units of the metric's bound. Whether it may be told to anybody
            is not for the gate to say: see `Gate.event`.
        reference: what later trials are compared with, from a gate that keeps a reference.
    """

    accepted: bool
    score: float
    reference: float | None = None


class Trial(Protocol):
    """What a gate may look at while a candidate is on trial."""

    @property
    def number(self) -> int:
        """Which trial (`visible`) or release (`hidden`) it is."""
        ...

    @property
    def phase(self) -> Phase:
        """How far the gate's parameters have moved."""
        ...

    @property
    def reference(self) -> float | None:
        """The reference that the last accepted trial left."""
        ...

    @property
    def rejected_in_a_row(self) -> int:
        """How many trials were rejected since the last acceptance."""
        ...

    @property
    def report(self) -> ClipReport:
        """What the clipping rule saw of the training batch."""
        ...

    def stream(self, purpose: str) -> Stream:
        """The random bits of this trial for one purpose."""
        ...

    def losses(self, indices: Tensor) -> Private[Tensor]:
        """The losses of these records at the model's present weights."""
        ...

    def propose(self) -> None:
        """Move the model to the candidate's weights."""
        ...


class Gate(Protocol):
    """A test that candidates have to pass.

    **Guarantee**: what `judge` computes is what `event` and `release_event` describe: the bound on the metric, its
    noise, its batch, and what of it is released.
    """

    @property
    def releases_scores(self) -> bool:
        """Whether the event of a trial covers the score of every trial, rejected ones included."""
        ...

    def event(self, candidate: Candidate, *, scored: bool) -> Event:
        """The event of one trial, charged under `visible`; `scored` covers the scores of accepted candidates too."""
        ...

    def release_event(self, candidate: Candidate) -> Event:
        """The event of one accepted candidate, charged under `hidden`."""
        ...

    def claimed_event(self, candidate: Candidate) -> Event:
        """What the method's paper charges an accepted candidate as. Not a guarantee."""
        ...

    def judge(self, trial: Trial) -> Verdict:
        """Look at the candidate and decide."""
        ...

    def to_json(self) -> dict[str, float | str | bool | None]:
        """The gate as plain values, for the record of the plan."""
        ...

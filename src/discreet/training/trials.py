"""Candidates on trial: one turn makes what the adversary sees next, a trial with its outcome or a whole update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from discreet.accounting.rdp import epsilon_from_rdp
from discreet.accounting.selective.claimed import WHOLE_ORDERS, claimed_rdp
from discreet.errors import TrialsExhausted, UserError
from discreet.gates.loss_test import LossTest
from discreet.gates.progress import PublicAccuracy
from discreet.gradients.private import Private
from discreet.training.evaluate import PublicData, accuracy, hits

if TYPE_CHECKING:
    from discreet.accounting import Event
    from discreet.accounting.rdp import Floats
    from discreet.gates.gate import Verdict
    from discreet.gates.selecting import Selecting
    from discreet.gradients.engine import ClipReport
    from discreet.noise.key import Stream
    from discreet.schedules import Phase
    from discreet.training.run import Release, Run
    from discreet.training.state import Selection


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What everybody may know of a turn.

    Attributes:
        updated: whether the weights moved.
        score: the noisy score of the trial, where its release was charged.
    """

    updated: bool
    score: float | None = None


class Trials:
    """The turns of a run whose candidates have to pass a gate.

    Guarantee: a rejected candidate leaves no trace in weights, optimizer, average, buffer or reference. Under
    `visible` accounting a turn is one trial. Under `hidden` it is one update; what the trials before it were like, and
    how many there were, is forgotten when the turn ends.

    Args:
        run: the run whose state is moved.
        selecting: gate, buffer and decay.
        public: records for a decay that follows the accuracy on public records.
    """

    def __init__(self, run: Run, selecting: Selecting, public: PublicData | None) -> None:
        if isinstance(selecting.progress, PublicAccuracy) and public is None:
            raise UserError(
                "the decay follows the accuracy on public records, and there are none: give some as `public`, or "
                'choose another progress ("scores" or "accuracy")'
            )
        self._run, self._selecting, self._public = run, selecting, public
        self._undo, self._marked, self._proposed = run.state.undo(), False, False
        self._number = self._trial = 0
        self._report: ClipReport | None = None
        self._claims: dict[Event, Floats] = {}

    @property
    def _selection(self) -> Selection:
        assert self._run.state.selection is not None
        return self._run.state.selection

    def event(self, number: int) -> Event:
        """What the next turn will cost, from the phase that the run is in."""
        return self._measurement or self._run.plan.event(number, self.phase)

    def turn(self, number: int) -> Turn:
        """Make the next trial (`visible`) or the next update (`hidden`), or take a measurement that is charged."""
        self._number, self._trial = number, 0
        if self._measurement is not None:
            self._follow()
            return Turn(updated=False)
        turn = self._until_updated() if self._run.plan.hides_trials else self._one_trial()
        selection, progress = self._selection, self._selecting.progress
        if turn.updated:
            self._claim(number)
            selection.unmeasured = True
            if progress is not None and progress.charge is None:
                self._follow()
            selection.scores = []
        return turn

    @property
    def seen(self) -> int | None:
        """How many candidates there were; None where that is secret."""
        return None if self._run.plan.hides_trials else self._selection.trials

    @property
    def ended(self) -> bool:
        """Whether the paper's formula, where it was to end the run, would not allow another update."""
        most, plan = self._run.plan.claimed_budget, self._run.plan
        if most is None:
            return False
        after = self._claimed_curve() + self._claimed_cost(self._run.state.releases)
        return epsilon_from_rdp(after, plan.budget.delta, WHOLE_ORDERS) > most

    def claimed_epsilon(self) -> float | None:
        """What the method's paper would print for the updates so far. Not a guarantee; None where it has no formula."""
        if not self._selecting.claims:
            return None
        return epsilon_from_rdp(self._claimed_curve(), self._run.plan.budget.delta, WHOLE_ORDERS)

    def _claim(self, number: int) -> None:
        if self._selecting.claims:
            self._selection.claimed = (self._claimed_curve() + self._claimed_cost(number)).tolist()

    def _claimed_curve(self) -> Floats:
        return np.array(self._selection.claimed or np.zeros_like(WHOLE_ORDERS))

    def _claimed_cost(self, number: int) -> Floats:
        event = self._selecting.claimed_event(self._run.plan.candidate(number, self.phase))
        if event not in self._claims:
            self._claims[event] = claimed_rdp(event, WHOLE_ORDERS)
        return self._claims[event]

    def _one_trial(self) -> Turn:
        verdict = self._try()
        selection, gate, buffer = self._selection, self._selecting.gate, self._selecting.buffer
        if not self._run.plan.hides_trials:
            selection.trials += 1
        if verdict.accepted:
            selection.accepted += 1
        else:
            selection.rejected_in_a_row += 1
        updated = verdict.accepted
        if buffer is not None:
            waiting = len(selection.scores)
            updated = 0 < waiting >= buffer.needed(selection.rejected_in_a_row)
            if updated:
                self._take(buffer.choose(selection.scores, self.stream("buffer choice")))
        if verdict.accepted or updated:
            selection.rejected_in_a_row = 0
        told = gate.releases_scores or (verdict.accepted and self._selecting.scored)
        return Turn(updated=updated, score=verdict.score if told else None)

    def _until_updated(self) -> Turn:
        termination = self._run.plan.termination
        assert termination is not None
        updated = False
        while not updated:
            if self._selection.rejected_in_a_row >= termination.cap:
                raise TrialsExhausted(
                    f"release {self._number + 1} found no candidate that passes: that is rarer than a thousandth of "
                    "delta, and paid for; the run cannot go on"
                )
            updated = self._one_trial().updated
            self._trial += 1
        return Turn(updated=True)

    def _try(self) -> Verdict:
        """Make one candidate and judge it; on return the weights are the candidate's only if it is an update."""
        selection, buffer = self._selection, self._selecting.buffer
        self._proposed = False
        _, self._report = self._run.private_gradient(self._number, self._trial, noise=selection.phase.noise)
        verdict = self._selecting.gate.judge(self)
        if verdict.accepted and buffer is None:
            if not self._proposed:
                self._step()
            self._settle()
        elif self._proposed:
            self._undo.back()
        if verdict.accepted:
            selection.reference = verdict.reference
            if self._selecting.scored:
                if buffer is not None:
                    selection.waiting[len(selection.scores)].copy_(self._run.state.gradient)
                selection.scores.append(verdict.score)
        return verdict

    def _take(self, place: int) -> None:
        """Update the weights by a candidate from the buffer: the same step as when it was on trial."""
        self._run.state.gradient.copy_(self._selection.waiting[place])
        self._step()
        self._settle()

    def _step(self) -> None:
        phase = self.phase
        self._run.propose(self._number, noise=phase.noise, learning_rate=phase.learning_rate)

    def _settle(self) -> None:
        self._run.state.settle(average=self._run.plan.average)
        self._marked = False

    # What a gate may look at.

    @property
    def number(self) -> int:
        """Which trial (`visible`) or release (`hidden`) it is."""
        return self._number

    @property
    def phase(self) -> Phase:
        """How far the gate's parameters have moved."""
        return self._selection.phase

    @property
    def reference(self) -> float | None:
        """The reference that the last accepted trial left."""
        return self._selection.reference

    @property
    def rejected_in_a_row(self) -> int:
        """How many trials were rejected since the last acceptance."""
        return self._selection.rejected_in_a_row

    @property
    def report(self) -> ClipReport:
        """What the clipping rule saw of the training batch."""
        assert self._report is not None
        return self._report

    def stream(self, purpose: str) -> Stream:
        """The random bits of this trial for one purpose."""
        return self._run.key.stream(purpose, self._number, self._trial)

    def losses(self, indices: Tensor) -> Private[Tensor]:
        """The losses of these records at the model's present weights."""
        return self._run.engine.losses(*self._run.batch(indices))

    def propose(self) -> None:
        """Move the model to the candidate's weights."""
        assert not self._proposed, "a gate proposes once"
        if not self._marked:
            self._undo.mark()
            self._marked = True
        self._step()
        self._proposed = True

    # What a measurement of progress may look at.

    @property
    def scores(self) -> Sequence[float]:
        """The released noisy scores of the candidates that the update was chosen from."""
        return self._selection.scores

    @property
    def gate(self) -> tuple[float, float]:
        """Threshold and deviation of the noise of those scores, in units of C_v."""
        gate = self._selecting.gate
        assert isinstance(gate, LossTest), "a plan that follows scores has a loss test"
        return gate.scale(self.phase)

    def public_accuracy(self) -> float:
        """The share of public records that the model gets right."""
        assert self._public is not None
        return accuracy(self._run.model, self._public)

    def correct(self, indices: Tensor) -> Private[int]:
        """How many of these private records the model gets right."""
        return Private(hits(self._run.model, *self._run.batch(indices)))

    @property
    def _measurement(self) -> Event | None:
        """The charge of the measurement that is to be taken next; None for a turn that makes candidates."""
        progress = self._selecting.progress
        if progress is None or not self._selection.unmeasured or self._settled(self._run.state.releases):
            return None
        return progress.charge

    def _settled(self, turns: int) -> bool:
        """Whether nothing decays any more after so many turns: epsilon_B is spent."""
        until = self._selecting.until
        return until is not None and self._run.spent(turns) >= until

    def _follow(self) -> None:
        """Measure the progress, and let the decay follow it."""
        decay, progress, selection = self._selecting.decay, self._selecting.progress, self._selection
        assert decay is not None
        assert progress is not None
        before, selection.unmeasured = selection.measured, False
        selection.measured = progress.measure(self, before)
        if before is not None and not self._settled(self._number + 1):
            selection.phase = decay.moved(self.phase, progress.progress(before, selection.measured, self))


def told_of_trials(releases: Sequence[Release]) -> dict[str, float]:
    """What is worth telling of a stretch of releases of a run with a gate; nothing of any other run.

    Under `hidden` accounting a release is an update, and no release says anything of its trials.
    """
    last = releases[-1]
    if last.accepted is None:
        return {}
    told = {"updates": float(last.updates)}
    if last.trials is not None:
        told["trials"] = float(last.trials)
        told["acceptance rate"] = last.accepted / max(1, last.trials)
    scores = [release.score for release in releases if release.score is not None]
    if scores:
        told["noisy score"] = sum(scores) / len(scores)
    return told

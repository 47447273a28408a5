"""Candidates on trial: one turn makes what the adversary sees next, a trial with its outcome or a whole update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from discreet.errors import TrialsExhausted, UserError
from discreet.gates.loss_test import LossTest
from discreet.training.evaluate import PublicData, accuracy, hits

if TYPE_CHECKING:
    from discreet.accounting import Event
    from discreet.gates.gate import Verdict
    from discreet.gates.selecting import Selecting
    from discreet.gradients.engine import ClipReport
    from discreet.gradients.private import Private
    from discreet.noise.key import Stream
    from discreet.schedules import Phase
    from discreet.training.run import Run
    from discreet.training.state import Selection


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
        if selecting.progress is not None and public is None and _needs_public(selecting):
            raise UserError(
                "the decay follows the accuracy on public records, and there are none: give some as `public`, or "
                'choose another progress ("scores" or "accuracy")'
            )
        self._run, self._selecting, self._public = run, selecting, public
        self._undo, self._marked, self._proposed = run.state.undo(), False, False
        self._number = self._trial = 0
        self._report: ClipReport | None = None

    @property
    def _selection(self) -> Selection:
        assert self._run.state.selection is not None
        return self._run.state.selection

    def event(self, number: int) -> Event:
        """What the next turn will cost, from the phase that the run is in."""
        return self._run.plan.event(number, self._selection.phase, measured=self._measures)

    def turn(self, number: int) -> tuple[bool, float | None]:
        """Make the next trial (`visible`) or the next update (`hidden`).

        Returns:
            Whether the weights were updated, and the trial's score if its release was charged.
        """
        self._number, self._trial = number, 0
        measured = self._measure() if self._measures else None
        score = None
        if self._run.plan.hides_trials:
            self._until_updated()
            updated = True
        else:
            updated, score = self._one_trial()
        selection, progress = self._selection, self._selecting.progress
        if measured is not None:
            self._move(*measured)
        if updated:
            selection.updated.append(number)
            selection.unmeasured = True
            if progress is not None and progress.charge is None:
                self._move(*self._measure())
            selection.scores = []
        return updated, score

    def _one_trial(self) -> tuple[bool, float | None]:
        verdict = self._try()
        selection, gate, buffer = self._selection, self._selecting.gate, self._selecting.buffer
        selection.rejected_in_a_row += 0 if verdict.accepted else 1
        updated = verdict.accepted
        if buffer is not None:
            waiting = len(selection.scores)
            updated = 0 < waiting >= buffer.needed(selection.rejected_in_a_row)
            if updated:
                self._take(buffer.choose(selection.scores, self.stream("buffer choice")))
        if verdict.accepted or updated:
            selection.rejected_in_a_row = 0
        told = gate.releases_scores or (verdict.accepted and self._selecting.scored)
        return updated, verdict.score if told else None

    def _until_updated(self) -> None:
        termination = self._run.plan.termination
        assert termination is not None
        updated = False
        while not updated:
            if self._selection.rejected_in_a_row >= termination.cap:
                raise TrialsExhausted(
                    f"release {self._number + 1} found no candidate that passes: that is rarer than a thousandth of "
                    "delta, and paid for; the run cannot go on"
                )
            updated, _ = self._one_trial()
            self._trial += 1

    def _try(self) -> Verdict:
        """Make one candidate and judge it; on return the weights are the candidate's only if it is an update."""
        selection, buffer = self._selection, self._selecting.buffer
        self._proposed = False
        self._report = self._run.private_gradient(self._number, self._trial, noise=selection.phase.noise)
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
        from discreet.gradients.private import Private

        return Private(hits(self._run.model, *self._run.batch(indices)))

    @property
    def _measures(self) -> bool:
        """Whether the next turn begins with a measurement that is charged."""
        progress, selection = self._selecting.progress, self._selection
        return (
            progress is not None
            and progress.charge is not None
            and selection.unmeasured
            and not self._settled
        )

    @property
    def _settled(self) -> bool:
        """Whether nothing decays any more: epsilon_B is spent."""
        until, run = self._selecting.until, self._run
        return until is not None and run.spent(run.state.releases) >= until

    def _measure(self) -> tuple[float | None, float]:
        progress, selection = self._selecting.progress, self._selection
        assert progress is not None
        before = selection.measured
        selection.measured = progress.measure(self, before)
        selection.unmeasured = False
        return before, selection.measured

    def _move(self, before: float | None, now: float) -> None:
        decay, progress = self._selecting.decay, self._selecting.progress
        assert decay is not None
        assert progress is not None
        if before is not None and not self._settled:
            self._selection.phase = decay.moved(self.phase, progress.progress(before, now, self))


def _needs_public(selecting: Selecting) -> bool:
    from discreet.gates.progress import PublicAccuracy

    return isinstance(selecting.progress, PublicAccuracy)

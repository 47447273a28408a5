"""A gate, and what happens to the candidates that pass it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from discreet.accounting import Accounting
from discreet.accounting.selective.events import BufferedRelease
from discreet.errors import UserError
from discreet.gates.gate import Candidate, Gate
from discreet.gates.loss_test import LossTest

if TYPE_CHECKING:
    from discreet.accounting import Event
    from discreet.gates.buffer import Buffer
    from discreet.gates.progress import Progress
    from discreet.schedules import PhasedDecay


@dataclass(frozen=True, kw_only=True)
class Selecting:
    """How candidates become updates: the gate, the buffer behind it, and how parameters move with progress.

    Attributes:
        gate: what a candidate has to pass.
        buffer: where accepted candidates wait for each other; None where each is an update at once.
        decay: how noise, threshold and learning rate follow the progress that is seen.
        progress: where progress is seen.
        until: epsilon_B: once so much is spent, nothing decays any more.
        claims: whether the method's paper has a formula for what an update costs.
    """

    gate: Gate
    buffer: Buffer | None = None
    decay: PhasedDecay | None = None
    progress: Progress | None = None
    until: float | None = None
    claims: bool = True

    def __post_init__(self) -> None:
        if (self.decay is None) != (self.progress is None):
            raise ValueError("a decay follows a progress: give both or neither")

    @property
    def scored(self) -> bool:
        """Whether the scores of accepted candidates are used after the gate."""
        return self.buffer is not None or (self.progress is not None and self.progress.uses_scores)

    def event(self, candidate: Candidate, accounting: Accounting) -> Event:
        """The event of one trial (`visible`) or of one update (`hidden`)."""
        if accounting is not Accounting.HIDDEN:
            return self.gate.event(candidate, scored=self.scored)
        if self.buffer is not None:
            return self._choice_event(self.buffer, candidate)
        return self.gate.event(candidate, scored=True) if self.scored else self.gate.release_event(candidate)

    def claimed_event(self, candidate: Candidate) -> Event:
        """What the method's paper charges an update as: one trial, whatever came before it."""
        return self.gate.claimed_event(candidate)

    def _choice_event(self, buffer: Buffer, candidate: Candidate) -> Event:
        if buffer.patience is not None:
            raise UserError(
                "patience depends on how many candidates were rejected, which is secret under hidden accounting; "
                "leave it out"
            )
        if self.progress is not None and self.progress.uses_scores and not buffer.charge_all:
            raise UserError(
                "a decay that follows the scores needs them released: under hidden accounting set charge_all, or let "
                'it follow another progress ("accuracy" or "public")'
            )
        if not isinstance(self.gate, LossTest):
            raise UserError("a buffer needs a loss test: the cost of choosing by other scores is not known")
        return BufferedRelease(
            **self.gate.facts(candidate),
            candidates=buffer.size,
            tie=buffer.tie,
            charge_all=buffer.charge_all,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "gate": self.gate.to_json(),
            "buffer": None if self.buffer is None else self.buffer.to_json(),
            "decay": None if self.decay is None else asdict(self.decay),
            "progress": None if self.progress is None else self.progress.to_json(),
            "until": self.until,
        }

"""A gate, and what happens to the candidates that pass it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from discreet.accounting import Accounting, Several
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

    def event(self, candidate: Candidate, accounting: Accounting, *, measured: bool) -> Event:
        """The event of one trial (`visible`) or one update (`hidden`); `measured` if progress is noised and charged."""
        if accounting is Accounting.HIDDEN:
            event = self._release_event(candidate)
        else:
            event = self.gate.event(candidate, scored=self.scored)
        if measured and self.progress is not None and self.progress.charge is not None:
            return Several(events=(event, self.progress.charge))
        return event

    def _release_event(self, candidate: Candidate) -> Event:
        if self.buffer is None:
            return self.gate.release_event(candidate)
        if not isinstance(self.gate, LossTest):
            raise UserError("a buffer needs a loss test: the cost of choosing by other scores is not known")
        return BufferedRelease(
            **self.gate.facts(candidate),
            candidates=self.buffer.size,
            tie=self.buffer.tie,
            charge_all=self.buffer.charge_all,
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

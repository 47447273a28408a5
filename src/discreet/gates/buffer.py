"""DPSGD-BR's buffer: candidates that passed wait until it is full, then one of them becomes the update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from discreet.errors import UserError

if TYPE_CHECKING:
    from discreet.noise.key import Stream


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """How many candidates are gathered, and which one is taken.

    Guarantee: under `visible` accounting the trials are charged with the scores of accepted candidates, and what is
    done with both is post-processing. Under `hidden` the charge is that of `BufferedRelease`.

    Attributes:
        size: n.
        tie: theta in units of C_v; of the two best scores that differ by no more, a fair coin decides.
        patience: T_max; after so many rejections in a row one candidate is enough until the next one passes.
        takes: "better" takes the smaller noisy loss change, "worse" the larger one as the paper's equation 16 reads.
        charge_all: under `hidden`, charge every accepted candidate with its score instead of the chosen one only.
    """

    size: int = 2
    tie: float = 0.0
    patience: int | None = None
    takes: str = "better"
    charge_all: bool = False

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UserError(f"size is {self.size}; a buffer holds at least 1 candidate")
        if not 0.0 <= self.tie < float("inf"):
            raise UserError(f"tie is {self.tie}; it is a finite number of at least 0")
        if self.patience is not None and self.patience < 1:
            raise UserError(f"patience is {self.patience}; it is a whole number of at least 1")
        if self.takes not in ("better", "worse"):
            raise UserError(f'takes is {self.takes!r}; it is "better" or "worse"')

    def needed(self, rejected_in_a_row: int) -> int:
        """How many candidates it takes now."""
        if self.patience is not None and rejected_in_a_row >= self.patience:
            return 1
        return self.size

    def choose(self, scores: Sequence[float], stream: Stream) -> int:
        """Which of the gathered candidates is taken."""
        sign = 1.0 if self.takes == "better" else -1.0
        order = sorted(range(len(scores)), key=lambda place: (sign * scores[place], place))
        if len(order) > 1 and abs(scores[order[0]] - scores[order[1]]) <= self.tie:
            return order[int(stream.words(1)[0]) & 1]
        return order[0]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

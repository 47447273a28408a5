"""What a run may spend, and by which accounting it is said to have spent it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from discreet.accounting.events import checked_number


class Accounting(StrEnum):
    """What the adversary is assumed to see, hence what has to be charged."""

    VISIBLE = "visible"
    """The accepted models and the outcome of every trial. Every trial is charged."""

    HIDDEN = "hidden"
    """The accepted models only: number and timing of the trials stay secret. Every release is charged."""

    CLAIMED = "claimed"
    """The formula of the method's own paper, kept to reproduce its tables. Not a guarantee."""

    @property
    def certified(self) -> bool:
        """Whether a number under this accounting is a guarantee."""
        return self is not Accounting.CLAIMED


def certified_accounting(accounting: str | Accounting) -> Accounting:
    """`accounting` as a certified accounting; `claimed` and unknown words are refused."""
    chosen = next((each for each in Accounting if each.value == str(accounting) and each.certified), None)
    if chosen is None:
        raise ValueError(
            f"accounting must be 'visible' or 'hidden' (the certified ones), not {str(accounting)!r}"
        )
    return chosen


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The (epsilon, delta)-differential privacy that a run must keep."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_number("epsilon", self.epsilon, low=0.0, open_low=True))
        delta = checked_number("delta", self.delta, low=0.0, high=1.0, open_low=True, open_high=True)
        object.__setattr__(self, "delta", delta)

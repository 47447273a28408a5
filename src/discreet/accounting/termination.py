"""A cap on consecutive trials, so that a release under `hidden` accounting always ends.

The idealised mechanism repeats until acceptance. The real one stops with an error after K trials. With an acceptance
probability of at least a_min the two differ with probability at most eta = T (1 - a_min)^K over T releases, and a
coupling gives the real one (epsilon, delta + (1 + e^epsilon) eta).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from discreet.accounting.events import Event, checked_number

SHARE_OF_DELTA = 1e-3
"""The part of delta that a cap on consecutive trials may cost."""

_SHARES = (SHARE_OF_DELTA, 0.01, 0.1, 0.5)


@dataclass(frozen=True, kw_only=True)
class Termination:
    """A promise that every release ends: after `cap` rejections in a row the run stops with an error.

    Attributes:
        cap: K, the most consecutive trials for one accepted candidate.
        lowest_acceptance: a_min, the smallest probability that a trial of the run is accepted.
        candidates: The most accepted candidates that the run makes.
    """

    cap: int
    lowest_acceptance: float
    candidates: int

    def __post_init__(self) -> None:
        checked_number("lowest_acceptance", self.lowest_acceptance, low=0.0, high=1.0, open_low=True)
        if self.cap < 1 or self.candidates < 1:
            raise ValueError(f"cap and candidates must be at least 1, not {self.cap!r}, {self.candidates!r}")

    def covers(self, event: Event) -> bool:
        """Whether trials of that event are accepted at least as often as promised."""
        return event.lowest_acceptance >= self.lowest_acceptance

    def epsilon(self, uncapped: Callable[[float], float], delta: float) -> float:
        """The epsilon that holds at `delta` for the capped run; infinite if delta is too small to pay for the cap.

        Args:
            uncapped: The epsilon of the run without a cap, as a function of delta.
            delta: The delta that the answer holds at, the price of the cap included.
        """
        for share in _SHARES:
            inner = delta * (1.0 - share)
            found = uncapped(inner)
            if math.isfinite(found) and self.delta(found, inner) <= delta:
                return found
        return math.inf

    def delta(self, epsilon: float, delta: float) -> float:
        """The delta that holds for the capped run at `epsilon`, where `delta` does for the one without a cap."""
        return capped_delta(
            epsilon=epsilon,
            delta=delta,
            lowest_acceptance=self.lowest_acceptance,
            releases=self.candidates,
            cap=self.cap,
        )

    def to_json(self) -> dict[str, Any]:
        """The promise as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Termination:
        """The promise that `to_json` wrote."""
        return cls(**record)


def trial_cap(*, epsilon: float, delta: float, lowest_acceptance: float, releases: int) -> int:
    """The smallest cap K on consecutive trials whose price is at most a thousandth of `delta`."""
    low = checked_number("lowest_acceptance", lowest_acceptance, low=0.0, high=1.0, open_low=True)
    checked_number("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True)
    checked_number("epsilon", epsilon, low=0.0)
    if releases < 1:
        raise ValueError(f"releases must be at least 1, not {releases!r}")
    if low == 1.0:
        return 1
    log_target = math.log(SHARE_OF_DELTA * delta / releases) - _log_one_plus_exp(epsilon)
    return max(1, math.ceil(log_target / math.log1p(-low)))


def capped_delta(*, epsilon: float, delta: float, lowest_acceptance: float, releases: int, cap: int) -> float:
    """The delta that holds for the capped mechanism at the same epsilon."""
    low = checked_number("lowest_acceptance", lowest_acceptance, low=0.0, high=1.0, open_low=True)
    if cap < 1:
        raise ValueError(f"cap must be at least 1, not {cap!r}")
    if low == 1.0:
        return delta
    log_price = _log_one_plus_exp(epsilon) + math.log(max(releases, 1)) + cap * math.log1p(-low)
    return min(1.0, delta + math.exp(min(log_price, 0.0)))


def _log_one_plus_exp(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))

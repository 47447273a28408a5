"""What a run plans to charge, what it promises before it starts, and what it has charged: three nouns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from discreet.accounting.budget import Accounting, Budget, certified_accounting
from discreet.accounting.events import Event, event_from_json
from discreet.accounting.termination import Termination

LOG_SCHEMA = 1

Calculus = Literal["best", "pld", "rdp"]
FilterKind = Literal["planned", "renyi-curve", "renyi-order"]
Runs = tuple[tuple[Event, int], ...]
"""Runs of equal events: each event with the number of consecutive releases that it was."""


@dataclass(frozen=True, kw_only=True)
class ChargePlan:
    """All charges that a run intends to make, in order, fixed before it starts.

    Attributes:
        releases: Runs of (event, count): release numbers 0, 1, 2, ... one after the other.
        once: Charges outside of the numbering, by name, such as noisy statistics of the features.
    """

    releases: Runs
    once: tuple[tuple[str, Event], ...] = ()

    def __post_init__(self) -> None:
        if any(count < 1 for _, count in self.releases):
            raise ValueError(f"releases must have counts of at least 1, not {self.releases!r}")
        names = [name for name, _ in self.once]
        if len(set(names)) != len(names):
            raise ValueError(f"once must have each name once, not {names!r}")

    @property
    def total(self) -> int:
        """The number of planned releases."""
        return sum(count for _, count in self.releases)

    def charges(self) -> list[tuple[Event, int]]:
        """Everything planned, as charges for the accountants."""
        return [*((event, 1) for _, event in self.once), *self.releases]

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON."""
        return {
            "releases": [{"event": event.to_json(), "count": count} for event, count in self.releases],
            "once": [{"event": event.to_json(), "name": name} for name, event in self.once],
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> ChargePlan:
        """The plan that `to_json` wrote."""
        return cls(
            releases=tuple((event_from_json(run["event"]), run["count"]) for run in record["releases"]),
            once=tuple((each["name"], event_from_json(each["event"])) for each in record["once"]),
        )


@dataclass(frozen=True, kw_only=True)
class LogHeader:
    """What a run promised before its first charge.

    Attributes:
        budget: What it may spend.
        accounting: The certified accounting by which it is charged.
        secure_noise: Whether the noise comes from a cryptographic generator under a secret key (not from a
        seed).
        calculus: How charges are composed: "best", "pld" or "rdp".
        filter: The kind of privacy filter: "planned", "renyi-curve" or "renyi-order".
        order: The order that a "renyi-order" filter was built on.
        plan: The planned charges: to be made if "planned", to give the curve if "renyi-curve".
        termination: The cap on consecutive trials of a release, where rejected trials are not charged; its price
            is taken off delta.
    """

    budget: Budget
    accounting: Accounting
    secure_noise: bool
    calculus: Calculus = "best"
    filter: FilterKind = "planned"
    order: float | None = None
    plan: ChargePlan | None = None
    termination: Termination | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "accounting", certified_accounting(self.accounting))
        if self.calculus not in get_args(Calculus):
            raise ValueError(f"calculus must be one of {get_args(Calculus)}, not {self.calculus!r}")
        if self.filter not in get_args(FilterKind):
            raise ValueError(f"filter must be one of {get_args(FilterKind)}, not {self.filter!r}")

    def to_json(self) -> dict[str, Any]:
        """The header as JSON."""
        return {
            "schema": LOG_SCHEMA,
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "accounting": self.accounting.value,
            "secure_noise": self.secure_noise,
            "calculus": self.calculus,
            "filter": self.filter,
            "order": self.order,
            "plan": None if self.plan is None else self.plan.to_json(),
            "termination": None if self.termination is None else self.termination.to_json(),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> LogHeader:
        """The header that `to_json` wrote."""
        if record["schema"] != LOG_SCHEMA:
            raise ValueError(
                f"schema {record['schema']!r} is not the schema {LOG_SCHEMA} that this version reads"
            )
        return cls(
            budget=Budget(**record["budget"]),
            accounting=certified_accounting(record["accounting"]),
            secure_noise=record["secure_noise"],
            calculus=record["calculus"],
            filter=record["filter"],
            order=record["order"],
            plan=None if record["plan"] is None else ChargePlan.from_json(record["plan"]),
            termination=None
            if record.get("termination") is None
            else Termination.from_json(record["termination"]),
        )


@dataclass(frozen=True, kw_only=True)
class History:
    """What a log says: its header and everything charged so far."""

    header: LogHeader
    releases: Runs = ()
    once: tuple[tuple[str, Event], ...] = ()

    @property
    def charged(self) -> int:
        """The number of releases that have been paid for: the numbers 0 to `charged - 1`."""
        return sum(count for _, count in self.releases)

    def charges(self) -> list[tuple[Event, int]]:
        """Everything charged, as charges for the accountants."""
        return [*((event, 1) for _, event in self.once), *self.releases]


def first_releases(runs: Iterable[tuple[Event, int]], releases: int) -> Runs:
    """What the first so many releases of these runs are."""
    kept = []
    for event, count in runs:
        if releases > 0:
            kept.append((event, min(count, releases)))
        releases -= count
    return tuple(kept)

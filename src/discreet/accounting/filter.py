"""The privacy filter: asked before every release, it charges durably or refuses, and then nothing is charged.

Two sound forms, chosen before a run starts:

- `PlannedFilter`: the whole sequence of events is fixed in advance. Its cost is known before the first release, by
  the best calculus; every charge must be the planned one. The run may end early, but never deviate.
- `RenyiFilter`: the events may depend on what was released. A curve of Renyi divergences is fixed in advance and
  kept at *every* order of it (Feldman and Zrnic 2021; Lecuyer 2021); epsilon follows from the curve, not from what
  happened. The curve is either that of a plan, or a bound at one order only, chosen in advance.

"Some order still has budget" is not a filter: paths that differ may be stopped by different orders, and then delta
exceeds its target. The tests construct such a case.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from discreet.accounting.composition import composed_rdp, epsilon
from discreet.accounting.events import Event
from discreet.accounting.history import History, LogHeader, first_releases
from discreet.accounting.log import EventLog
from discreet.accounting.rdp import ORDERS, Floats, certified_rdp, epsilon_from_rdp
from discreet.accounting.termination import SHARE_OF_DELTA
from discreet.errors import BudgetExhausted, UserError

_ROUNDING = 1e-9
"""Relative room for rounding in a sum of many divergences; the curve that epsilon comes from contains it."""


class PrivacyFilter(Protocol):
    """What a training loop asks before it computes a release."""

    @property
    def charged(self) -> int:
        """The number of releases that have been paid for."""

    @property
    def history(self) -> History:
        """What was promised and charged."""

    def charge(self, release: int, event: Event, count: int = 1) -> None:
        """Charge `count` releases from that number on, or raise `BudgetExhausted` and charge nothing."""

    def charge_once(self, name: str, event: Event) -> None:
        """Charge something outside of the numbering, or raise `BudgetExhausted` and charge nothing."""

    def certified_epsilon(self, delta: float) -> float:
        """The epsilon that holds at `delta` whatever happens in the run and whenever it is stopped."""


def open_filter(header: LogHeader, log: EventLog | None = None) -> PrivacyFilter:
    """The filter that a header describes, charging to `log` (when None, to memory: for simulations only).

    With the log of an interrupted run, its charges are taken over.
    """
    if header.filter == "planned":
        return PlannedFilter(header, log)
    return RenyiFilter(header, log)


class PlannedFilter:
    """Lets exactly the planned charges pass, if all of them together keep the budget.

    Guarantee: the releases made, at any point at which the run is stopped, are a part of the plan; their
    epsilon is at most that of the plan, which is checked against the budget here, before anything is
    released.
    """

    def __init__(self, header: LogHeader, log: EventLog | None = None) -> None:
        if header.filter != "planned" or header.plan is None:
            raise ValueError(
                f"a planned filter needs a header with filter 'planned' and a plan, not {header!r}"
            )
        self._header = header
        self._plan = header.plan
        self._once = dict(header.plan.once)
        self._stops = np.cumsum([count for _, count in header.plan.releases], dtype=np.int64)
        self._total = header.plan.total
        self._log = log
        self._charged = 0
        for event, _ in header.plan.releases:
            _require_covered(header, event)
        planned = self.certified_epsilon(header.budget.delta)
        if not planned <= header.budget.epsilon:
            raise BudgetExhausted(
                f"the plan of {header.plan.total} releases costs epsilon {planned:.4g} at delta "
                f"{header.budget.delta:g}, more than the budget of {header.budget.epsilon:g}"
            )
        if log is not None:
            self._take_over(log)

    def _take_over(self, log: EventLog) -> None:
        start = 0
        for event, count in log.history.releases:
            self._check(start, event, count)
            start += count
        for name, event in log.history.once:
            self._check_once(name, event)
        self._charged = log.charged

    @property
    def charged(self) -> int:
        """The number of releases that have been paid for."""
        return self._charged

    @property
    def history(self) -> History:
        """What was promised and charged."""
        if self._log is not None:
            return self._log.history
        return History(header=self._header, releases=first_releases(self._plan.releases, self._charged))

    def charge(self, release: int, event: Event, count: int = 1) -> None:
        """Charge `count` releases from that number on, as planned, or refuse and charge nothing."""
        _require_next(release, count, self._charged)
        self._check(release, event, count)
        if self._log is not None:
            self._log.charge(release, event, count)
        self._charged = max(self._charged, release + count)

    def charge_once(self, name: str, event: Event) -> None:
        """Charge a planned event outside of the numbering, or refuse and charge nothing."""
        self._check_once(name, event)
        if self._log is not None:
            self._log.charge_once(name, event)

    def certified_epsilon(self, delta: float) -> float:
        """The epsilon of the whole plan at `delta`."""
        header = self._header

        def uncapped(delta: float) -> float:
            return epsilon(
                self._plan.charges(), delta, accounting=header.accounting, calculus=header.calculus
            )

        return uncapped(delta) if header.termination is None else header.termination.epsilon(uncapped, delta)

    def _check(self, release: int, event: Event, count: int) -> None:
        if release + count > self._total:
            raise BudgetExhausted(f"all {self._total} planned releases have been charged")
        first = int(np.searchsorted(self._stops, release, side="right"))
        last = int(np.searchsorted(self._stops, release + count - 1, side="right"))
        for planned, _ in self._plan.releases[first : last + 1]:
            if planned != event:
                raise UserError(f"release {release} is planned as {planned}, and was asked for as {event}")

    def _check_once(self, name: str, event: Event) -> None:
        if name not in self._once:
            raise BudgetExhausted(f"nothing named {name!r} is planned; planned are {sorted(self._once)}")
        if self._once[name] != event:
            raise UserError(f"{name!r} is planned as {self._once[name]}, and was asked for as {event}")


class RenyiFilter:
    """Lets any event pass as long as the sum of the divergences stays below a fixed curve at every order.

    Guarantee: the events may be chosen in view of everything released before. Whatever they are and
    whenever the run stops, its Renyi divergence is at most the curve (Feldman and Zrnic 2021, Theorem 3.1,
    at each order by itself), and epsilon is the curve's, at whichever order converts best: the curve was
    fixed before the run.
    """

    def __init__(self, header: LogHeader, log: EventLog | None = None) -> None:
        if header.calculus != "rdp":
            raise ValueError(f"a Renyi filter composes by the calculus 'rdp', not {header.calculus!r}")
        self._header = header
        self.limit = _limit(header)
        cost = self.certified_epsilon(header.budget.delta)
        if not cost <= header.budget.epsilon:
            raise BudgetExhausted(
                f"the planned curve converts to epsilon {cost:.4g} at delta {header.budget.delta:g}, more than the "
                f"budget of {header.budget.epsilon:g}"
            )
        self._log = None
        self._charged = 0
        self._once: dict[str, Event] = {}
        self._spent = np.zeros_like(ORDERS)
        self._trail: list[Floats] = []
        self._releases: list[tuple[Event, int]] = []
        self._costs: dict[Event, Floats] = {}
        if log is not None:
            for name, event in log.history.once:
                self.charge_once(name, event)
            for event, count in log.history.releases:
                self.charge(self._charged, event, count)
        self._log = log

    @property
    def charged(self) -> int:
        """The number of releases that have been paid for."""
        return self._charged

    @property
    def history(self) -> History:
        """What was promised and charged."""
        if self._log is not None:
            return self._log.history
        return History(header=self._header, releases=tuple(self._releases), once=tuple(self._once.items()))

    def charge(self, release: int, event: Event, count: int = 1) -> None:
        """Charge `count` releases from that number on, or raise `BudgetExhausted` and charge nothing."""
        _require_next(release, count, self._charged)
        fresh = max(0, release + count - self._charged)
        after = self._after(event, fresh)
        if self._log is not None:
            self._log.charge(release, event, count)
        if fresh:
            each = (after - self._spent) / fresh
            self._trail.extend(self._spent + (number + 1) * each for number in range(fresh))
            self._releases.append((event, fresh))
        self._spent = after
        self._charged += fresh

    def charge_once(self, name: str, event: Event) -> None:
        """Charge something outside of the numbering, or raise `BudgetExhausted` and charge nothing."""
        after = self._spent if name in self._once else self._after(event, 1)
        if self._log is not None:
            self._log.charge_once(name, event)
        elif self._once.get(name, event) != event:
            raise UserError(f"{name!r} was charged as {self._once[name]}, and now asked for as {event}")
        self._once[name] = event
        self._spent = after

    def certified_epsilon(self, delta: float) -> float:
        """The epsilon of the curve at `delta`."""
        return _capped(self._header, self.limit, delta)

    def spent(self, delta: float, releases: int) -> float:
        """The epsilon of the first releases, at the orders that the filter keeps; for people to watch."""
        if not 0 <= releases <= self._charged:
            raise ValueError(f"{releases} releases were made and {self._charged} charged")
        if not releases:
            return 0.0
        spent = np.where(np.isfinite(self.limit), self._trail[releases - 1], np.inf)
        return _capped(self._header, spent, delta)

    def _after(self, event: Event, count: int) -> Floats:
        if count == 0:
            return self._spent
        _require_covered(self._header, event)
        after = self._spent + count * self._cost(event)
        if not (after <= self.limit).all():
            raise BudgetExhausted(
                f"{count} more of {event} would exceed the budget; {self._charged} releases have been charged"
            )
        return np.asarray(after)

    def _cost(self, event: Event) -> Floats:
        """The divergences of one event at the orders that are kept; at the others nothing is counted."""
        if event not in self._costs:
            kept = np.isfinite(self.limit)
            cost = np.zeros_like(ORDERS)
            for part in event.parts():
                cost[kept] += certified_rdp(part, ORDERS[kept], self._header.accounting)
            self._costs[event] = cost
        return self._costs[event]


def _capped(header: LogHeader, curve: Floats, delta: float) -> float:
    if header.termination is None:
        return epsilon_from_rdp(curve, delta)
    return header.termination.epsilon(lambda inner: epsilon_from_rdp(curve, inner), delta)


def _require_covered(header: LogHeader, event: Event) -> None:
    if header.termination is not None and not header.termination.covers(event):
        raise ValueError(
            f"trials of {event} may be accepted less often than the {header.termination.lowest_acceptance:.3g} that "
            "the cap on consecutive trials was computed for"
        )


def _require_next(release: int, count: int, charged: int) -> None:
    if count < 1 or not 0 <= release <= charged:
        raise ValueError(f"the next release to charge is number {charged}, not {count} from {release}")


def _limit(header: LogHeader) -> Floats:
    if header.filter == "renyi-curve":
        if header.plan is None:
            raise ValueError("a 'renyi-curve' filter needs the plan whose curve is not to be exceeded")
        return composed_rdp(header.plan.charges(), accounting=header.accounting) * (1.0 + _ROUNDING)
    if header.filter != "renyi-order" or header.order is None or header.order not in ORDERS:
        raise ValueError(f"a 'renyi-order' filter needs one of the default orders, not {header.order!r}")
    order, budget = header.order, header.budget
    delta = budget.delta if header.termination is None else budget.delta * (1.0 - SHARE_OF_DELTA)
    bound = budget.epsilon - math.log1p(-1.0 / order) + math.log(delta * order) / (order - 1.0)
    if bound <= 0.0:
        raise UserError(f"order {order:g} is too small for epsilon {budget.epsilon:g}; choose a larger one")
    # A hair less, so that the conversion back is not rounded across the budget.
    return np.where(order == ORDERS, bound * (1.0 - 1e-12), np.inf)

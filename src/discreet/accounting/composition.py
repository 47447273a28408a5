"""What several releases cost together: epsilon at a delta, and delta at an epsilon.

Two calculi compose the *whole* sequence, each in its own terms: Renyi divergences, which add, and privacy
loss distributions, which convolve. The smaller of the two complete answers is taken; they are never mixed,
because a sum of epsilons from different calculi is not a bound on anything.

**Guarantee.** The composition of the events is (epsilon, delta)-differentially private for the addition or
removal of one record, against an adversary who chooses the later events' functions adaptively, as long as the
sequence of events itself is fixed in advance (`filter` covers sequences that are not).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.budget import Accounting, certified_accounting
from discreet.accounting.events import Event, UnknownEventError, checked_number
from discreet.accounting.fourier import ComposedLoss, Ensemble, compose
from discreet.accounting.history import Calculus
from discreet.accounting.pld import loss_distributions, smallest_interval, typical_loss
from discreet.accounting.profiles import Profile
from discreet.accounting.rdp import ORDERS, certified_rdp, delta_from_rdp, epsilon_from_rdp
from discreet.accounting.spread import Mixture, few_distinct, merged

Floats = NDArray[np.float64]
Charges = Iterable[tuple[Event, int]]
Renyi = TypeVar("Renyi")
Loss = TypeVar("Loss")

_FINENESS = 0.03
"""Grid interval in typical losses: the joined curve inflates the variance by at most 0.03^2 / 6."""

_MAX_WINDOW = 2**20
_ROWS = 4096

_QUESTIONS = (0.3, 1e-2, 1e-5, 1e-10)
"""The deltas that a whole profile is made sharp at; between them it holds as well, and is nearly as sharp."""


def epsilon(
    charges: Charges, delta: float, *, accounting: str | Accounting = "visible", calculus: Calculus = "best"
) -> float:
    """The certified epsilon of a composition at `delta`; infinite when no finite one can be certified.

    Args:
        charges: Pairs of an event and how often it happened.
        delta: The probability with which the bound may fail, in (0, 1).
        accounting: What the adversary sees, "visible" or "hidden".
        calculus: "rdp", "pld", or "best", the smaller of both.
    """
    checked_number("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True)
    return _answer(
        charges,
        accounting,
        calculus,
        lambda curve: epsilon_from_rdp(curve, delta),
        lambda terms, sees: max(loss.epsilon(delta) for loss in _compose_losses(terms, sees, delta=delta)),
    )


def delta(
    charges: Charges, epsilon: float, *, accounting: str | Accounting = "visible", calculus: Calculus = "best"
) -> float:
    """The certified delta of a composition at `epsilon`, 1 when there is none. Arguments as for `epsilon`."""
    checked_number("epsilon", epsilon, low=0.0)
    return _answer(
        charges,
        accounting,
        calculus,
        lambda curve: delta_from_rdp(curve, epsilon),
        lambda terms, sees: max(
            loss.delta(epsilon) for loss in _compose_losses(terms, sees, epsilon=epsilon)
        ),
    )


def profile(
    charges: Charges, *, accounting: str | Accounting = "visible", calculus: Calculus = "best"
) -> Profile:
    """The certified profile of a composition: its delta as a function of epsilon, for each direction by itself.

    Every point is a bound of its own, so all of them hold at once. Arguments as for `epsilon`.
    """
    _require_calculus(calculus)
    sees = certified_accounting(accounting)
    terms = _Terms.of(few_distinct(merged(list(charges))))
    if not terms.events:
        return Profile(add=np.zeros_like, remove=np.zeros_like)
    curve, losses = _each(
        calculus,
        lambda: _rdp(terms, sees),
        lambda: [_compose_losses(terms, sees, delta=question) for question in _QUESTIONS],
    )

    def side(number: int) -> Callable[[Floats], Floats]:
        def at(epsilon: float) -> float:
            found = [each[number].delta(epsilon) for each in losses or ()]
            return min([1.0, *found] if curve is None else [1.0, delta_from_rdp(curve, epsilon), *found])

        return lambda epsilons: np.array([at(float(epsilon)) for epsilon in np.atleast_1d(epsilons)])

    return Profile(add=side(0), remove=side(1))


def _answer(
    charges: Charges,
    accounting: str | Accounting,
    calculus: Calculus,
    by_rdp: Callable[[Floats], float],
    by_pld: Callable[[_Terms, Accounting], float],
) -> float:
    """The answer of the chosen calculus, or the smaller complete answer; NaN never wins."""
    _require_calculus(calculus)
    sees = certified_accounting(accounting)
    terms = _Terms.of(few_distinct(merged(list(charges))))
    if not terms.events:
        return 0.0
    answers = _each(calculus, lambda: by_rdp(_rdp(terms, sees)), lambda: by_pld(terms, sees))
    return min(_number(answer) for answer in answers if answer is not None)


def _require_calculus(calculus: Calculus) -> None:
    if calculus not in ("best", "pld", "rdp"):
        raise ValueError(f"calculus must be 'best', 'pld' or 'rdp', not {calculus!r}")


def _each(
    calculus: Calculus, by_rdp: Callable[[], Renyi], by_pld: Callable[[], Loss]
) -> tuple[Renyi | None, Loss | None]:
    """What each calculus says that was asked for; None for one that does not know a kind of event."""
    if calculus == "rdp":
        return by_rdp(), None
    if calculus == "pld":
        return None, by_pld()
    # A kind of event may be known to one calculus only; the other one then answers alone.
    try:
        renyi = by_rdp()
    except UnknownEventError:
        return None, by_pld()
    try:
        return renyi, by_pld()
    except UnknownEventError:
        return renyi, None


def _number(answer: float) -> float:
    return math.inf if math.isnan(answer) else answer


def composed_rdp(charges: Charges, *, accounting: str | Accounting = "visible") -> Floats:
    """The certified Renyi divergence of a composition at the default orders."""
    return _rdp(_Terms.of(few_distinct(merged(list(charges)))), certified_accounting(accounting))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Terms:
    """The terms of a composition as arrays: row i mixes `events[index[i]]` by `weight[i]`, `count[i]` times."""

    events: list[Event]
    index: NDArray[np.int64]
    weight: Floats
    count: Floats

    @classmethod
    def of(cls, terms: list[tuple[Mixture, int]]) -> _Terms:
        place: dict[Event, int] = {}
        width = max((len(mixture) for mixture, _ in terms), default=1)
        index = np.zeros((len(terms), width), dtype=np.int64)
        weight = np.zeros((len(terms), width))
        for row, (mixture, _) in enumerate(terms):
            for column, (share, event) in enumerate(mixture):
                index[row, column] = place.setdefault(event, len(place))
                weight[row, column] = share
            index[row, len(mixture) :] = index[row, 0]
        count = np.array([count for _, count in terms], dtype=float)
        return cls(events=list(place), index=index, weight=weight, count=count)


def _rdp(terms: _Terms, accounting: Accounting) -> Floats:
    """Sum over the terms of the divergence of a public mixture, log(sum of w exp((a-1) R)) / (a-1)."""
    if not terms.events:
        return np.zeros_like(ORDERS)
    curves = np.array([certified_rdp(event, ORDERS, accounting) for event in terms.events])
    if terms.index.shape[1] == 1:
        total = terms.count @ curves[terms.index[:, 0]]
        return np.where(np.isnan(total), np.inf, total)
    growth = np.expm1(np.minimum((ORDERS - 1.0) * curves, 600.0))
    total = np.zeros_like(ORDERS)
    for start in range(0, len(terms.count), _ROWS):
        rows = slice(start, start + _ROWS)
        excess = np.einsum("tk,tko->to", terms.weight[rows], growth[terms.index[rows]])
        largest = curves[terms.index[rows]].max(axis=1)
        # Where an exponential would overflow, the largest part bounds the mixture.
        each = np.where((ORDERS - 1.0) * largest < 600.0, np.log1p(excess) / (ORDERS - 1.0), largest)
        total += terms.count[rows] @ each
    return np.where(np.isnan(total), np.inf, total)


def _compose_losses(
    terms: _Terms, accounting: Accounting, *, delta: float | None = None, epsilon: float | None = None
) -> list[ComposedLoss]:
    """The composed loss when a record is added, and when one is removed."""
    events, index, weight, count = terms.events, terms.index, terms.weight, terms.count
    interval = _interval(terms, accounting)
    while True:
        pairs = [loss_distributions(event, interval, accounting) for event in events]
        ensembles = [
            Ensemble(parts=[pair[side] for pair in pairs], index=index, weight=weight, count=count)
            for side in (0, 1)
        ]
        composed = [compose(each, delta=delta, epsilon=epsilon, limit=_MAX_WINDOW) for each in ensembles]
        kept = [each for each in composed if each is not None]
        if len(kept) == len(composed):
            return kept
        interval *= 2.0


def _interval(terms: _Terms, accounting: Accounting) -> float:
    """A grid interval that is small against the losses' root mean square and keeps each distribution small.

    Only the sharpness depends on it. Rounded down to a power of sqrt(2), so that distributions are used
    again.
    """
    squares = np.array([typical_loss(event, accounting) for event in terms.events]) ** 2
    mean_square = float((terms.weight * squares[terms.index]).sum(axis=1) @ terms.count / terms.count.sum())
    wanted = _FINENESS * math.sqrt(mean_square)
    finest = max(smallest_interval(event, accounting) for event in terms.events)
    return math.sqrt(2.0) ** math.ceil(2.0 * math.log2(max(finest, wanted / math.sqrt(2.0), 1e-9)))

"""How much noise, or how many releases, a budget allows. The answers never overshoot it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from discreet.accounting.budget import Accounting, Budget
from discreet.accounting.composition import epsilon
from discreet.accounting.events import Event
from discreet.accounting.history import Calculus
from discreet.errors import UserError

_LARGEST_NOISE = 2.0**40
_SMALLEST_NOISE = 2.0**-10
_MAX_EVALUATIONS = 60


def calibrate_noise(
    charges_for: Callable[[float], Sequence[tuple[Event, int]]],
    budget: Budget,
    *,
    accounting: str | Accounting = "visible",
    calculus: Calculus = "best",
    tolerance: float = 0.01,
) -> float:
    """The smallest noise multiplier found whose charges keep the budget, within `tolerance` of its epsilon.

    Renyi accounting, which is fast, brackets the answer; false position in (log multiplier, log epsilon),
    where the curve is nearly straight, then needs a few evaluations of the calculus itself. Only a
    multiplier that was evaluated and found within the budget is returned.

    Args:
        charges_for: The charges of the whole run at a given noise multiplier; more noise must not cost more.
        budget: What may be spent.
        accounting: What the adversary sees.
        calculus: The calculus that has to keep the budget.
        tolerance: How much of the budget's epsilon may be left unused, as a fraction.

    Raises:
        UserError: No amount of noise keeps the budget.
    """
    if not 0.0 < tolerance < 1.0:
        raise ValueError(f"tolerance must be between 0 and 1, not {tolerance!r}")

    def spent(multiplier: float, by: Calculus) -> float:
        return epsilon(charges_for(multiplier), budget.delta, accounting=accounting, calculus=by)

    bracket: Calculus = calculus if calculus == "pld" else "rdp"
    enough = 1.0
    while spent(enough, bracket) > budget.epsilon:
        enough *= 2.0
        if enough > _LARGEST_NOISE:
            raise UserError(
                f"no amount of noise keeps epsilon {budget.epsilon:g} at delta {budget.delta:g}: what does "
                "not depend on the noise costs more already. Raise the budget or drop those releases."
            )
    within, at_within = enough, spent(enough, calculus)
    beyond, at_beyond = within, at_within
    while at_beyond <= budget.epsilon:
        within, at_within = beyond, at_beyond
        if at_within >= (1.0 - tolerance) * budget.epsilon or within < _SMALLEST_NOISE:
            return within
        beyond = within / 2.0
        at_beyond = spent(beyond, calculus)

    aim = math.log((1.0 - tolerance / 2.0) * budget.epsilon)
    for _ in range(_MAX_EVALUATIONS):
        guess = _straight(math.log(within), at_within, math.log(beyond), at_beyond, aim)
        at_guess = spent(math.exp(guess), calculus)
        if at_guess <= budget.epsilon:
            within, at_within = math.exp(guess), at_guess
            if at_within >= (1.0 - tolerance) * budget.epsilon:
                break
        else:
            beyond, at_beyond = math.exp(guess), at_guess
    return within


def calibrate_releases(
    event_at: Callable[[int], Event],
    budget: Budget,
    *,
    limit: int,
    accounting: str | Accounting = "visible",
    calculus: Calculus = "best",
    before: Sequence[tuple[Event, int]] = (),
) -> int:
    """The most releases that keep the budget: one more would overshoot, or `limit` is reached.

    Args:
        event_at: The event of release number i = 0, 1, ...; the same one, or one from a schedule.
        budget: What may be spent.
        limit: The most releases that are wanted.
        accounting: What the adversary sees.
        calculus: The calculus that has to keep the budget.
        before: What is charged besides, whatever the number of releases.

    Raises:
        UserError: Not even one release keeps the budget.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit!r}")
    events: list[Event] = []
    known: dict[tuple[int, Calculus], float] = {}

    def spent(releases: int, by: Calculus) -> float:
        if (releases, by) not in known:
            events.extend(event_at(i) for i in range(len(events), releases))
            charges = [*before, *Counter(events[:releases]).items()]
            known[releases, by] = epsilon(charges, budget.delta, accounting=accounting, calculus=by)
        return known[releases, by]

    if spent(1, calculus) > budget.epsilon:
        raise UserError(
            f"not even one release keeps epsilon {budget.epsilon:g} at delta {budget.delta:g}: it would cost "
            f"{spent(1, calculus):.4g}. Raise the budget, add noise, or sample fewer records."
        )
    within, beyond = 1, 2
    while beyond < limit and spent(beyond, "rdp" if calculus == "best" else calculus) <= budget.epsilon:
        within, beyond = beyond, 2 * beyond
    beyond = min(beyond, limit)
    while spent(beyond, calculus) <= budget.epsilon:
        within = beyond
        if within == limit:
            return limit
        beyond = min(2 * beyond, limit)

    aim = math.log(budget.epsilon)
    for turn in range(_MAX_EVALUATIONS):
        if beyond - within <= 1:
            break
        ends = math.log(within), spent(within, calculus), math.log(beyond), spent(beyond, calculus)
        # Every third step halves the bracket: a curve that is not straight costs a few evaluations only.
        guess = (within + beyond) // 2 if turn % 3 == 2 else round(math.exp(_straight(*ends, aim)))
        guess = min(max(guess, within + 1), beyond - 1)
        within, beyond = (guess, beyond) if spent(guess, calculus) <= budget.epsilon else (within, guess)
    return within


def _straight(x_within: float, at_within: float, x_beyond: float, at_beyond: float, aim: float) -> float:
    """Where the line through two points of (x, log epsilon) takes the value `aim`, inside the bracket."""
    low = math.log(max(at_within, 1e-300))
    high = math.log(at_beyond) if math.isfinite(at_beyond) else low + 40.0
    share = (aim - low) / (high - low) if high > low else 0.5
    return x_within + min(max(share, 0.02), 0.98) * (x_beyond - x_within)

"""Lower bounds on what a mechanism gives away, from how often its secrets were guessed right.

All bounds are statements with a confidence: each is wrong with a probability of at most 1 - confidence, over the
secrets, the mechanism's own randomness and the adversary's.

The game of the bounds from one run: each of m canaries is put into the data by its own fair coin. The adversary sees
what the run releases and guesses, for some of the canaries, whether they are in. Which and how many it guesses it may
choose by what it sees, but no more than a number that was fixed before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from discreet.accounting.profiles import Profile
from discreet.accounting.tradeoff import Lines, lines
from discreet.errors import UserError

_MOST_EPSILON = 50.0
_STEPS = 40


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """How an adversary fared in one run.

    Attributes:
        canaries: m, how many records were in or out by a coin.
        made: how many of them it ventured a guess for.
        right: how many of those guesses were right.
    """

    canaries: int
    made: int
    right: int

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.made <= self.canaries or self.canaries < 1:
            raise UserError(
                f"{self.right} right of {self.made} guesses on {self.canaries} canaries: right is at most made, and "
                "made at most canaries"
            )


def most_guesses(canaries: int) -> int:
    """How many canaries an adversary guesses, half of them in and half out: a function of their number alone.

    Those with the highest and the lowest scores are the safest, and too few of them leave too much to chance: ten
    times the root of the number of canaries is near the best for epsilon 1 to 4.
    """
    return min(canaries, round(10.0 * math.sqrt(canaries)))


def guess(scores: NDArray[np.float64], present: NDArray[np.bool_]) -> Guesses:
    """Guess "in" for the canaries with the highest scores and "out" for those with the lowest."""
    half = most_guesses(len(scores)) // 2
    order = np.argsort(scores, kind="stable")
    right = int((~present[order[:half]]).sum() + present[order[len(order) - half :]].sum())
    return Guesses(canaries=len(scores), made=2 * half, right=right)


def proportion(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    """Bounds on a probability from independent trials (Clopper and Pearson 1934); each holds with `confidence`."""
    require_confidence(confidence)
    if not 0 <= successes <= trials or trials < 1:
        raise UserError(f"successes is {successes} of {trials} trials; it lies between 0 and the trials")
    doubt = 1.0 - confidence
    low = 0.0 if successes == 0 else float(stats.beta.ppf(doubt, successes, trials - successes + 1))
    high = (
        1.0 if successes == trials else float(stats.beta.ppf(confidence, successes + 1, trials - successes))
    )
    return low, high


def epsilon_of_errors(false_alarms: float, misses: float, delta: float) -> float:
    """The least epsilon at which a test with such error rates can exist (Kairouz, Oh, Viswanath 2015).

    With upper bounds on both rates that hold together, the result is a lower bound that holds with them.
    """
    found = 0.0
    for one, other in ((false_alarms, misses), (misses, false_alarms)):
        if 1.0 - one - delta > other > 0.0:
            found = max(found, math.log((1.0 - one - delta) / other))
    return found


def one_run_epsilon(guesses: Guesses, *, delta: float, confidence: float = 0.95) -> float:
    """The largest epsilon at `delta` that so many right guesses refute (Steinke, Nasr, Jagielski 2023, theorem 5.2).

    If the run were (epsilon, delta)-private, at least v of r guesses would be right with probability at most
    f(v) + 2 m delta max over i of (f(v - i) - f(v)) / i, with f the tail of r coins of bias e^epsilon/(1 + e^epsilon).
    """
    require_confidence(confidence)
    places = np.arange(1, guesses.right + 1)

    def refuted(epsilon: float) -> bool:
        if not guesses.right:
            return False
        bias = 1.0 / (1.0 + math.exp(-epsilon))
        tail = stats.binom.sf(guesses.right - 1, guesses.made, bias)
        nearer = stats.binom.sf(guesses.right - places - 1, guesses.made, bias)
        slack = float(((nearer - tail) / places).max())
        return float(tail) + 2.0 * guesses.canaries * delta * slack < 1.0 - confidence

    return largest(refuted, 0.0, _MOST_EPSILON)


def refutes(bound: Lines | Profile, guesses: Guesses, *, confidence: float = 0.95) -> bool:
    """Whether so many right guesses refute a privacy profile (Mahloujifar, Melis, Chaudhuri 2024).

    Guarantee: a mechanism that keeps to the profile is refuted with a probability of at most 1 - confidence. The
    argument, with the bounds of both directions averaged, is in docs/audits.md. In short: let p_i be the probability of
    i right guesses, and for every i

        r_i = sum over j >= i of j p_j / m,     h_i = sum over j >= i of (made - j) p_j / m.

    The probability that a guess on a random canary is right, and at least i are, is r_i; had its coin fallen the other
    way the guess would be wrong, and at least i - 1 right: so r_i is at most what the profile allows for h_(i-1). From
    P(at least `right`) = 1 - confidence, the least values that r and h can have are followed down to i = 0, where they
    add to made / m if the p_i are probabilities. If they add to more, there is no such mechanism.
    """
    require_confidence(confidence)
    allowed = bound if isinstance(bound, Lines) else both_ways(bound)
    made, right, canaries = guesses.made, guesses.right, guesses.canaries
    slopes, offsets = _envelope(allowed)
    all_of_it = made / canaries
    r = (1.0 - confidence) * right / canaries
    h = (1.0 - confidence) * (made - right) / canaries
    place, last = 0, len(slopes) - 1
    for i in range(right - 1, -1, -1):
        while (
            place < last
            and (r - offsets[place + 1]) / slopes[place + 1] >= (r - offsets[place]) / slopes[place]
        ):
            place += 1
        least = (r - offsets[place]) / slopes[place]
        if least > h:
            r += i / (made - i) * (least - h)
            h = least
        if r + h > all_of_it:
            return True
    return False


def both_ways(bound: Profile) -> Lines:
    """What a profile allows for a record that is in or out by a fair coin: the mean of both directions."""
    add, remove = lines(bound)
    return add.mean(remove)


def largest(refuted: Callable[[float], bool], low: float, high: float) -> float:
    """The largest value between two that is refuted, by halving; `low` if none is, `high` if all are."""
    if refuted(high):
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if refuted(middle):
            low = middle
        else:
            high = middle
        if high - low < 1e-4:
            break
    return low


def require_confidence(confidence: float) -> None:
    """Refuse what is no confidence."""
    if not 0.5 <= confidence < 1.0:
        raise UserError(f"confidence is {confidence}; it lies in [0.5, 1)")


def _envelope(allowed: Lines) -> tuple[list[float], list[float]]:
    """The lines x >= (y - offset) / slope that bind somewhere, in the order in which they bind as y grows.

    The inverse of the concave bound is convex: its pieces get steeper, so the slopes here go down.
    """
    order = np.argsort(-allowed.slopes)
    rises, starts = 1.0 / allowed.slopes[order], -(allowed.offsets / allowed.slopes)[order]
    kept: list[int] = []

    def crossing(one: int, other: int) -> float:
        return float((starts[one] - starts[other]) / (rises[other] - rises[one]))

    for number in range(len(rises)):
        while len(kept) > 1 and crossing(kept[-2], number) <= crossing(kept[-2], kept[-1]):
            kept.pop()
        kept.append(number)
    chosen = order[kept]
    return allowed.slopes[chosen].tolist(), allowed.offsets[chosen].tolist()

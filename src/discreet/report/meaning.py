"""What epsilon and delta mean for a person: how well anybody can tell whether a record was used."""

from __future__ import annotations

import math
from collections.abc import Sequence

from discreet.report.material import Bound


def most_hits(false_alarms: float, bounds: Sequence[Bound]) -> float:
    """The most records that an attacker can recognise, as a share, at a given share of false alarms.

    Whatever the attacker computes from the released model, (epsilon, delta)-differential privacy for adding
    and removing a record bounds the hits by e^epsilon * alarms + delta and by
    1 - e^-epsilon * (1 - delta - alarms) (Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2015). Several
    pairs hold together, so the least counts.
    """
    reached = 1.0
    for bound in bounds:
        growth = math.exp(min(bound.epsilon, 700.0))
        reached = min(
            reached,
            growth * false_alarms + bound.delta,
            1.0 - (1.0 - bound.delta - false_alarms) / growth,
        )
    return reached


def most_right_guesses(bounds: Sequence[Bound]) -> float:
    """How often, at most, a guess is right on a record that was used by the toss of a fair coin."""
    best = 1.0
    for bound in bounds:
        growth = math.exp(min(bound.epsilon, 700.0))
        best = min(best, (growth + bound.delta) / (1.0 + growth))
    return best

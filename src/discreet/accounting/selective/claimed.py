"""The papers' own formulas. **None of them is a guarantee**; they are here to reproduce the papers' tables.

They charge accepted updates only and treat the acceptance as if it were post-processing of a Gaussian. The accepted
candidate's law is reweighted by a data-dependent acceptance probability and normalised by a data-dependent constant,
which neither of the two charges covers: explicit pairs of data sets exceed them (see the tests).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

import numpy as np

from discreet.accounting.events import Event, Gaussian, PoissonGaussian
from discreet.accounting.rdp import ORDERS, epsilon_from_rdp
from discreet.accounting.selective.corners import tilted_rate
from discreet.accounting.selective.events import AnnealedTrial, BatchGatedTrial, GatedTrial
from discreet.accounting.selective.likelihood import Floats, LikelihoodRatio
from discreet.accounting.selective.plain import sampled_rdp

WHOLE_ORDERS: Floats = np.arange(2.0, 65.0)
"""The orders of the published implementations."""
WHOLE_ORDERS.setflags(write=False)


@singledispatch
def claimed_rdp(event: Event, orders: Floats) -> Floats:
    """What the event's paper charges per accepted release. Not a guarantee."""
    raise NotImplementedError(f"there is no claimed formula for events of kind {event.kind!r}")


@claimed_rdp.register
def _(event: PoissonGaussian, orders: Floats) -> Floats:
    return sampled_rdp(LikelihoodRatio(event.sample_rate, event.noise_multiplier), orders)


@claimed_rdp.register
def _(event: Gaussian, orders: Floats) -> Floats:
    return orders / (2.0 * event.noise_multiplier**2)


@claimed_rdp.register(GatedTrial)
@claimed_rdp.register(AnnealedTrial)
def _(event: GatedTrial | AnnealedTrial, orders: Floats) -> Floats:
    """DPSUR, Theorem 5.6; DPSGD-BR, equations 23 and 24: one sampled Gaussian for the update, one for the score."""
    return sampled_rdp(event.law, orders) + sampled_rdp(event.test_law, orders)


@claimed_rdp.register
def _(event: BatchGatedTrial, orders: Floats) -> Floats:
    """DPSR-CG, Theorem 3.1: plain DP-SGD at the inflated rate q* = q r / (1 - q + q r)."""
    inflated = tilted_rate(event.sample_rate, event.gate.high_ratio)
    return sampled_rdp(LikelihoodRatio(inflated, event.noise_multiplier), orders)


def claimed_epsilon(charges: Iterable[tuple[Event, int]], delta: float, *, orders: Floats = ORDERS) -> float:
    """The epsilon that the papers would print for these accepted releases. Not a guarantee."""
    total = np.zeros_like(orders)
    for event, count in charges:
        total = total + count * claimed_rdp(event, orders)
    return epsilon_from_rdp(total, delta, orders)


def claimed_releases(event: Event, epsilon: float, delta: float, *, orders: Floats = WHOLE_ORDERS) -> int:
    """How many accepted releases the paper's formula allows. Not a guarantee."""
    curve = claimed_rdp(event, orders)
    low, high = 0, 1
    while epsilon_from_rdp(high * curve, delta, orders) <= epsilon:
        low, high = high, 2 * high
        if high > 2**40:
            raise ValueError(f"epsilon {epsilon:g} allows any number of releases of {event}")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high) if epsilon_from_rdp(middle * curve, delta, orders) <= epsilon else (low, middle)
        )
    return low

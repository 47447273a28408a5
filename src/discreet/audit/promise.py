"""What a run promises, as a profile, and the family of weaker promises that a lower bound is read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np

from discreet.accounting import Event, Profile, PureDP, RenyiFilter, Several, open_filter, profile
from discreet.accounting.events import PoissonPureDP
from discreet.accounting.rdp import delta_from_rdp
from discreet.accounting.termination import capped_delta
from discreet.plan import Plan

Charges = Sequence[tuple[Event, int]]

_NOISES = ("noise_multiplier", "gate_multiplier")


def promised(plan: Plan) -> Profile:
    """The profile that the certificate of a run of this plan stands for, the price of a cap on trials included."""
    guard = open_filter(plan.header(secure_noise=True))
    if isinstance(guard, RenyiFilter):
        limit = guard.limit

        def within(epsilons: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
            return np.array([delta_from_rdp(limit, float(each)) for each in epsilons])

        found = Profile(add=within, remove=within)
    else:
        found = profile(plan.charges(), accounting=plan.accounting, calculus=plan.calculus)
    return found if plan.termination is None else _capped(found, plan)


def certified_epsilon(plan: Plan) -> float:
    """What the certificate of a run of this plan says at the budget's delta."""
    return open_filter(plan.header(secure_noise=True)).certified_epsilon(plan.budget.delta)


def noisier(charges: Charges, factor: float) -> list[tuple[Event, int]]:
    """The same releases with the noise of each multiplied by `factor`: in the gate's scores as in the sums."""
    return [(_noisier(event, factor), count) for event, count in charges]


def _noisier(event: Event, factor: float) -> Event:
    if isinstance(event, Several):
        return Several(events=tuple(_noisier(each, factor) for each in event.events))
    if isinstance(event, PureDP | PoissonPureDP):
        return replace(event, epsilon=event.epsilon / factor)
    scaled = {each.name: factor * getattr(event, each.name) for each in fields(event) if each.name in _NOISES}
    if not scaled:
        raise ValueError(f"it is not known how noise is added to events of kind {event.kind!r}")
    return cast(Event, replace(cast(Any, event), **scaled))


def _capped(uncapped: Profile, plan: Plan) -> Profile:
    cap = plan.termination
    assert cap is not None

    def paid(side: Any) -> Any:
        def at(epsilons: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
            return np.array(
                [
                    capped_delta(
                        epsilon=float(epsilon),
                        delta=float(delta),
                        lowest_acceptance=cap.lowest_acceptance,
                        releases=cap.candidates,
                        cap=cap.cap,
                    )
                    for epsilon, delta in zip(epsilons, side(epsilons), strict=True)
                ]
            )

        return at

    return Profile(add=paid(uncapped.add), remove=paid(uncapped.remove))

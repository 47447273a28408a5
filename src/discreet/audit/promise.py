"""What a run promises, as a profile, and the family of weaker promises that a lower bound is read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, cast

from discreet.accounting import Event, Profile, PureDP, Several, open_filter
from discreet.accounting.copies import promised_profile
from discreet.accounting.events import PoissonPureDP
from discreet.plan import Plan

Charges = Sequence[tuple[Event, int]]

_NOISES = ("noise_multiplier", "gate_multiplier")


def promised(plan: Plan) -> Profile:
    """The profile that the certificate of a run of this plan stands for."""
    return promised_profile(plan.header(secure_noise=True))


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

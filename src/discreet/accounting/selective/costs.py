"""What selective events cost under `visible` and `hidden` accounting: their Renyi curves and privacy profiles.

Every figure is the smallest of the bounds that are valid for the event; a bound that is not a number or infinite
never wins.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from discreet.accounting.budget import Accounting
from discreet.accounting.events import UnknownEventError
from discreet.accounting.profiles import Profile, privacy_profile
from discreet.accounting.rdp import rdp_curve
from discreet.accounting.selective import same_batch
from discreet.accounting.selective.choice import chosen_corners
from discreet.accounting.selective.corners import acceptance_corners
from discreet.accounting.selective.events import (
    AnnealedTrial,
    BatchGatedTrial,
    BufferedRelease,
    CandidateTrial,
    GatedTrial,
    IndependentlyGatedTrial,
    ScoredTrial,
)
from discreet.accounting.selective.gates import Acceptance, BatchGate
from discreet.accounting.selective.hidden import hidden_rdp
from discreet.accounting.selective.hidden_profile import hidden_profile
from discreet.accounting.selective.likelihood import LARGEST_MU, Floats, LikelihoodRatio
from discreet.accounting.selective.plain import plain_profile, sampled_rdp
from discreet.accounting.selective.scored import composed_profile, scored_profile
from discreet.accounting.selective.tables import tabulated
from discreet.accounting.selective.visible import exact_rdp, released_rdp, thinned_rdp
from discreet.accounting.selective.visible_profile import exact_profile
from discreet.accounting.spread import Mixture, spread
from discreet.errors import UserError


@spread.register
def _(event: CandidateTrial, ratio: float) -> Mixture:
    """The trial with its rate rounded up and its multiplier rounded down to a grid, which never costs less.

    A candidate with more noise or a smaller rate is a garbling of one with less: its likelihood ratio is below the
    other's in convex order, and every bound here is an expectation of a convex function of it. The gate stands.
    """
    step = math.log(ratio) / 2.0
    rate = event.sample_rate
    if 0.0 < rate < 1.0:
        rate = max(rate, min(1.0, math.exp(step * math.ceil(math.log(rate) / step))))
    noise = min(event.noise_multiplier, math.exp(step * math.floor(math.log(event.noise_multiplier) / step)))
    return ((1.0, replace(event, sample_rate=rate, noise_multiplier=noise)),)


def smallest(*curves: Floats) -> Floats:
    """The smallest of several bounds at each place; what is not a number counts as infinite."""
    return np.asarray(np.minimum.reduce([np.where(np.isnan(curve), np.inf, curve) for curve in curves]))


def _checked_gate(event: IndependentlyGatedTrial) -> Acceptance:
    """The acceptance of an event that is charged under `hidden` accounting; refused where no bound can be computed."""
    acceptance = event.acceptance
    if not acceptance.moderate or event.gate_multiplier * LARGEST_MU < 1.0:
        raise UserError(
            f"gate_multiplier {event.gate_multiplier:g} is too small for 'hidden' accounting: the acceptance "
            f"probability ranges from {acceptance.low:.3g} to {acceptance.high:.3g}. Add noise to the gate, or use "
            "'visible' accounting"
        )
    return acceptance


@rdp_curve.register(GatedTrial)
@rdp_curve.register(AnnealedTrial)
def _(event: IndependentlyGatedTrial, orders: Floats, accounting: Accounting) -> Floats:
    if not _sees_trials(accounting):
        return np.maximum(*hidden_rdp(event.law, acceptance_corners(_checked_gate(event)), orders))
    if _is_moderate(event):
        return np.maximum(*exact_rdp(event.law, acceptance_corners(event.acceptance), orders))
    return smallest(
        released_rdp(event.law, event.test_law, orders), thinned_rdp(event.law, event.acceptance, orders)
    )


@privacy_profile.register(GatedTrial)
@privacy_profile.register(AnnealedTrial)
def _(event: IndependentlyGatedTrial, accounting: Accounting) -> Profile:
    if not _sees_trials(accounting):
        return hidden_profile(event.law, acceptance_corners(_checked_gate(event)))
    if _is_moderate(event):
        return exact_profile(event.law, acceptance_corners(event.acceptance))
    return _released_profile(event)


@rdp_curve.register
def _(event: ScoredTrial, orders: Floats, accounting: Accounting) -> Floats:
    if not _sees_trials(accounting):
        corners = acceptance_corners(_checked_gate(event), score_multiplier=event.gate_multiplier)
        return np.maximum(*hidden_rdp(event.law, corners, orders))
    bounds = [released_rdp(event.law, event.test_law, orders)]
    if _is_moderate(event):
        corners = acceptance_corners(event.acceptance, score_multiplier=event.gate_multiplier)
        bounds.append(np.maximum(*exact_rdp(event.law, corners, orders)))
    return smallest(*bounds)


@privacy_profile.register
def _(event: ScoredTrial, accounting: Accounting) -> Profile:
    if not _sees_trials(accounting):
        return _hidden_scored_profile(event)
    return _visible_scored_profile(event) if _is_moderate(event) else _released_profile(event)


@lru_cache(maxsize=32)
def _visible_scored_profile(event: ScoredTrial) -> Profile:
    corners = acceptance_corners(event.acceptance, score_multiplier=event.gate_multiplier)
    return tabulated(scored_profile(event.law, corners))


@lru_cache(maxsize=32)
def _hidden_scored_profile(event: ScoredTrial) -> Profile:
    """One after the other: the candidate, then its score given the candidate, which is a gate on its own batch."""
    acceptance = _checked_gate(event)
    return composed_profile(
        hidden_profile(event.law, acceptance_corners(acceptance)),
        same_batch.hidden_profile(event.test_law, 1.0 / acceptance.kappa, acceptance.kappa),
    )


@lru_cache(maxsize=32)
def _released_profile(event: IndependentlyGatedTrial) -> Profile:
    """Bound 1: candidate and score always published."""
    return composed_profile(plain_profile(event.law), plain_profile(event.test_law))


def _is_moderate(event: IndependentlyGatedTrial) -> bool:
    """Whether the exact bounds can be computed in floats."""
    acceptance = event.acceptance
    enough_noise = min(event.noise_multiplier, event.gate_multiplier) * LARGEST_MU >= 1.0
    return acceptance.moderate and acceptance.moderate_rejection and enough_noise


@rdp_curve.register
def _(event: BatchGatedTrial, orders: Floats, accounting: Accounting) -> Floats:
    gate = _checked_batch_gate(event, accounting)
    if not _sees_trials(accounting):
        return np.maximum(*same_batch.hidden_rdp(event.released_law, gate.low_ratio, gate.high_ratio, orders))
    bounds = [sampled_rdp(event.joint_law, orders)]
    if gate.moderate:
        bounds.append(np.maximum(*same_batch.visible_rdp(event.released_law, gate, orders)))
    return smallest(*bounds)


@privacy_profile.register
def _(event: BatchGatedTrial, accounting: Accounting) -> Profile:
    gate = _checked_batch_gate(event, accounting)
    if not _sees_trials(accounting):
        return _batch_profile(event.released_law, gate)
    return (
        same_batch.visible_profile(event.released_law, gate)
        if gate.moderate
        else plain_profile(event.joint_law)
    )


def _checked_batch_gate(event: BatchGatedTrial, accounting: Accounting) -> BatchGate:
    gate = event.gate
    if not _sees_trials(accounting) and not gate.moderate:
        raise UserError(
            f"gate_multiplier {event.gate_multiplier:g} is too small for 'hidden' accounting: one record may change "
            f"the acceptance probability by a factor of {1.0 / max(gate.low_ratio, 1e-300):.3g}. Add noise to the "
            "gate, or use 'visible' accounting"
        )
    return gate


@lru_cache(maxsize=32)
def _batch_profile(law: LikelihoodRatio, gate: BatchGate) -> Profile:
    return tabulated(same_batch.hidden_profile(law, gate.low_ratio, gate.high_ratio))


@rdp_curve.register
def _(event: BufferedRelease, orders: Floats, accounting: Accounting) -> Floats:
    _only_hidden(event, accounting)
    if event.charge_all:
        return event.candidates * rdp_curve(_candidate(event), orders, accounting)
    return np.maximum(*hidden_rdp(event.law, chosen_corners(event.law, event.choice), orders))


@privacy_profile.register
def _(event: BufferedRelease, accounting: Accounting) -> Profile:
    _only_hidden(event, accounting)
    if event.charge_all:
        return _all_candidates_profile(event)
    return hidden_profile(event.law, chosen_corners(event.law, event.choice))


@lru_cache(maxsize=32)
def _all_candidates_profile(event: BufferedRelease) -> Profile:
    each = privacy_profile(_candidate(event), Accounting.HIDDEN)
    total = each
    for _ in range(event.candidates - 1):
        total = composed_profile(total, each)
    return total


def _candidate(event: BufferedRelease) -> ScoredTrial:
    return ScoredTrial(
        sample_rate=event.sample_rate,
        noise_multiplier=event.noise_multiplier,
        gate_rate=event.gate_rate,
        gate_multiplier=event.gate_multiplier,
        gate_threshold=event.gate_threshold,
    )


def _sees_trials(accounting: Accounting) -> bool:
    if accounting is Accounting.CLAIMED:
        raise ValueError(
            "accounting must be 'visible' or 'hidden' here; claimed formulas are in selective.claimed"
        )
    return accounting is Accounting.VISIBLE


def _only_hidden(event: BufferedRelease, accounting: Accounting) -> None:
    if _sees_trials(accounting):
        raise UnknownEventError(
            f"{event.kind!r} is charged under 'hidden' accounting; under 'visible' charge its trials"
        )

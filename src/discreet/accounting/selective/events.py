"""Selective release as kinds of events, and what they cost under `visible` and `hidden` accounting.

Under `visible` accounting one event is charged per *trial*, under `hidden` per *release* (per choice, for a buffered
one). Whoever charges says which by the accounting that the run has chosen before it starts.

Every figure is the smallest of the bounds that are valid for the event; a bound that is not a number or infinite
never wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from discreet.accounting.budget import Accounting
from discreet.accounting.events import (
    Event,
    UnknownEventError,
    checked_number,
    joint_multiplier,
    register_event,
)
from discreet.accounting.profiles import Profile, privacy_profile
from discreet.accounting.rdp import rdp_curve
from discreet.accounting.selective import same_batch
from discreet.accounting.selective.choice import BufferedChoice, chosen_corners
from discreet.accounting.selective.corners import acceptance_corners
from discreet.accounting.selective.gates import Acceptance, AnnealingGate, BatchGate, LossGate
from discreet.accounting.selective.hidden import hidden_rdp
from discreet.accounting.selective.hidden_profile import hidden_profile
from discreet.accounting.selective.likelihood import LARGEST_MU, Floats, LikelihoodRatio
from discreet.accounting.selective.plain import plain_profile, sampled_rdp
from discreet.accounting.selective.scored import composed_profile, scored_profile
from discreet.accounting.selective.tables import tabulated
from discreet.accounting.selective.visible import exact_rdp, released_rdp, thinned_rdp
from discreet.accounting.selective.visible_profile import exact_profile
from discreet.errors import UserError


@dataclass(frozen=True, kw_only=True)
class _Trial(Event):
    """A Poisson-sampled Gaussian candidate (rate q, multiplier sigma) before a gate."""

    sample_rate: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        rate = checked_number("sample_rate", self.sample_rate, low=0.0, high=1.0)
        noise = checked_number("noise_multiplier", self.noise_multiplier, low=0.0, open_low=True)
        object.__setattr__(self, "sample_rate", rate)
        object.__setattr__(self, "noise_multiplier", noise)

    @property
    def law(self) -> LikelihoodRatio:
        """The likelihood ratio of the candidate."""
        # Without sampling there is no record in the batch, whatever the noise.
        return LikelihoodRatio(self.sample_rate, self.noise_multiplier if self.sample_rate > 0.0 else 1.0)


@dataclass(frozen=True, kw_only=True)
class _GatedTrial(_Trial):
    """A trial before a gate on an independent validation batch (rate q_v, multiplier sigma_v)."""

    gate_rate: float
    gate_multiplier: float

    @property
    def acceptance(self) -> Acceptance:
        """The range of the acceptance probability."""
        raise NotImplementedError

    @property
    def test_law(self) -> LikelihoodRatio:
        """The likelihood ratio of the noisy score."""
        return LikelihoodRatio(self.gate_rate, self.gate_multiplier)


@register_event
@dataclass(frozen=True, kw_only=True)
class GatedTrial(_GatedTrial):
    """A candidate that is released if its noisy loss change is below beta C_v (DPSUR)."""

    kind: ClassVar[str] = "gated-trial"

    gate_threshold: float

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("gate_rate", "gate_multiplier", "gate_threshold"):
            object.__setattr__(self, name, float(getattr(self, name)))
        _ = self.gate

    @property
    def gate(self) -> LossGate:
        """The gate."""
        return LossGate(
            sample_rate=self.gate_rate, noise_multiplier=self.gate_multiplier, threshold=self.gate_threshold
        )

    @property
    def acceptance(self) -> Acceptance:
        """The range of the acceptance probability."""
        return self.gate.acceptance()


@register_event
@dataclass(frozen=True, kw_only=True)
class ScoredTrial(GatedTrial):
    """A gated candidate that is released together with its noisy score, as a later choice by scores needs it."""

    kind: ClassVar[str] = "scored-trial"


@register_event
@dataclass(frozen=True, kw_only=True)
class AnnealedTrial(_GatedTrial):
    """A candidate that is released if it looks better, else by a coin that gets colder (SA-DP-SGD)."""

    kind: ClassVar[str] = "annealed-trial"

    coldness: float

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("gate_rate", "gate_multiplier", "coldness"):
            object.__setattr__(self, name, float(getattr(self, name)))
        _ = self.gate

    @property
    def gate(self) -> AnnealingGate:
        """The gate."""
        return AnnealingGate(
            sample_rate=self.gate_rate, noise_multiplier=self.gate_multiplier, coldness=self.coldness
        )

    @property
    def acceptance(self) -> Acceptance:
        """The range of the acceptance probability."""
        return self.gate.acceptance()


@register_event
@dataclass(frozen=True, kw_only=True)
class BatchGatedTrial(_Trial):
    """A candidate that is released if a noisy metric of its own batch is good enough (DPSR-CG).

    Attributes:
        private_reference: The metric is compared with the privatised one of an earlier accepted trial, which is
            released and charged here; otherwise the reference is a public constant.
    """

    kind: ClassVar[str] = "batch-gated-trial"

    gate_multiplier: float
    gate_threshold: float
    gate_span: float = 1.0
    one_sided: bool = False
    private_reference: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("gate_multiplier", "gate_threshold", "gate_span"):
            object.__setattr__(self, name, float(getattr(self, name)))
        _ = self.gate

    @property
    def gate(self) -> BatchGate:
        """The gate."""
        return BatchGate(
            noise_multiplier=self.gate_multiplier,
            threshold=self.gate_threshold,
            span=self.gate_span,
            one_sided=self.one_sided,
        )

    @property
    def released_law(self) -> LikelihoodRatio:
        """The ratio of what an accepted trial publishes: the candidate, and its metric if that is a reference."""
        return self.joint_law if self.private_reference else self.law

    @property
    def joint_law(self) -> LikelihoodRatio:
        """The ratio of candidate and metric together: two Gaussians on one batch."""
        return LikelihoodRatio(
            self.sample_rate, joint_multiplier([self.noise_multiplier, self.gate_multiplier])
        )


@register_event
@dataclass(frozen=True, kw_only=True)
class BufferedRelease(GatedTrial):
    """A buffer of accepted candidates, of which the best by noisy score is released (DPSGD-BR). `hidden` only.

    Under `visible` accounting charge its trials instead (`ScoredTrial`, or `GatedTrial` and one `PoissonGaussian` per
    fresh comparison); the choice itself is then post-processing.

    Attributes:
        candidates: n, the size of the buffer.
        tie: theta in units of C_v.
        charge_all: Charge every accepted candidate with its score; otherwise the chosen one only. Both are valid.
    """

    kind: ClassVar[str] = "buffered-release"

    candidates: int = 2
    tie: float = 0.0
    charge_all: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "tie", float(self.tie))
        _ = self.choice

    @property
    def choice(self) -> BufferedChoice:
        """The choice."""
        return BufferedChoice(gate=self.gate, candidates=self.candidates, tie=self.tie)


def smallest(*curves: Floats) -> Floats:
    """The smallest of several bounds at each place; what is not a number counts as infinite."""
    return np.asarray(np.minimum.reduce([np.where(np.isnan(curve), np.inf, curve) for curve in curves]))


def _checked_gate(event: _GatedTrial) -> Acceptance:
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
def _(event: _GatedTrial, orders: Floats, accounting: Accounting) -> Floats:
    if not _sees_trials(accounting):
        return np.maximum(*hidden_rdp(event.law, acceptance_corners(_checked_gate(event)), orders))
    bounds = [
        released_rdp(event.law, event.test_law, orders),
        thinned_rdp(event.law, event.acceptance, orders),
    ]
    if _is_moderate(event):
        bounds.append(np.maximum(*exact_rdp(event.law, acceptance_corners(event.acceptance), orders)))
    return smallest(*bounds)


@privacy_profile.register(GatedTrial)
@privacy_profile.register(AnnealedTrial)
def _(event: _GatedTrial, accounting: Accounting) -> Profile:
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
def _released_profile(event: _GatedTrial) -> Profile:
    """Bound 1: candidate and score always published."""
    return composed_profile(plain_profile(event.law), plain_profile(event.test_law))


def _is_moderate(event: _GatedTrial) -> bool:
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

"""Selective release as kinds of events; what they cost is in `costs`.

Under `visible` accounting one event is charged per *trial*, under `hidden` per *release* (per choice, for a buffered
one). Whoever charges says which by the accounting that the run has chosen before it starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.accounting.events import Event, checked_number, joint_multiplier, register_event
from discreet.accounting.selective.choice import BufferedChoice
from discreet.accounting.selective.gates import Acceptance, AnnealingGate, BatchGate, LossGate
from discreet.accounting.selective.likelihood import LikelihoodRatio


@dataclass(frozen=True, kw_only=True)
class CandidateTrial(Event):
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
class IndependentlyGatedTrial(CandidateTrial):
    """A trial before a gate on an independent validation batch (rate q_v, multiplier sigma_v)."""

    gate_rate: float
    gate_multiplier: float

    @property
    def acceptance(self) -> Acceptance:
        """The range of the acceptance probability."""
        raise NotImplementedError

    @property
    def lowest_acceptance(self) -> float:
        """The acceptance probability of the worst metric."""
        return self.acceptance.low

    @property
    def highest_acceptance(self) -> float:
        """The acceptance probability of the best metric."""
        return self.acceptance.high

    @property
    def test_law(self) -> LikelihoodRatio:
        """The likelihood ratio of the noisy score."""
        return LikelihoodRatio(self.gate_rate, self.gate_multiplier)


@register_event
@dataclass(frozen=True, kw_only=True)
class GatedTrial(IndependentlyGatedTrial):
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
class AnnealedTrial(IndependentlyGatedTrial):
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
class BatchGatedTrial(CandidateTrial):
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
    def lowest_acceptance(self) -> float:
        """The acceptance probability of the worst metric."""
        return self.gate.low

    @property
    def highest_acceptance(self) -> float:
        """The acceptance probability of the best metric."""
        return self.gate.high

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

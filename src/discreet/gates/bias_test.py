"""DPSR-CG's test: a candidate passes unless its batch was clipped clearly more than the last accepted one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.accounting.selective.events import BatchGatedTrial
from discreet.errors import UserError
from discreet.gates.gate import Candidate, Trial, Verdict

if TYPE_CHECKING:
    from torch import Tensor

    from discreet.accounting import Event


@dataclass(frozen=True, kw_only=True)
class BiasTest:
    """Accept if the noisy change of the clipping bias is below a threshold.

    The bias of a batch is a sum over its records: a record whose gradient norm n is above the scaling bound Z adds
    min(n, cap) / cap, any other adds 0. The change against the reference is clipped to [-span/2, span/2].

    Guarantee: a record adds between 0 and 1, so it moves the clipped change by at most 1 and never downwards, and
    N(0, sigma_v^2) is added after the clipping. That is `accounting.selective.gates.BatchGate` with `one_sided`. The
    reference is a public number, or the noisy bias of the last accepted trial, which the event then covers.

    Attributes:
        bound: Z, the scaling bound of the clipping rule.
        cap: the second bound, at which a record's share is 1; at least Z.
        noise_multiplier: sigma_v, in units of what one record can add.
        threshold: in units of half the span; the noisy change has to be below it.
        span: the width of the interval that the change is clipped to, in records; at least 1.
        reference: the expected bias that the first trials are compared with, in records; a public number.
        follows: whether the noisy bias of an accepted trial becomes the next reference (and is charged).
    """

    bound: float
    cap: float
    noise_multiplier: float
    threshold: float
    span: float
    reference: float
    follows: bool = True

    def __post_init__(self) -> None:
        if not self.cap >= self.bound > 0.0:
            raise UserError(
                f"cap is {self.cap}; it is at least the scaling bound {self.bound}, which is positive"
            )
        if not self.span >= 1.0:
            raise UserError(
                f"span is {self.span}; the change is clipped to an interval of at least one record"
            )

    @property
    def releases_scores(self) -> bool:
        """Only those of accepted trials, as references, and only where these follow."""
        return False

    def event(self, candidate: Candidate, *, scored: bool) -> Event:
        """A trial gated by its own batch."""
        if scored:
            raise UserError("a buffer needs the scores of a loss test, not of a bias test")
        return BatchGatedTrial(
            sample_rate=candidate.sample_rate,
            noise_multiplier=candidate.noise_multiplier,
            gate_multiplier=self.noise_multiplier,
            gate_threshold=self.threshold,
            gate_span=self.span,
            one_sided=True,
            private_reference=self.follows,
        )

    def release_event(self, candidate: Candidate) -> Event:
        """The same mechanism under `hidden`."""
        return self.event(candidate, scored=False)

    def claimed_event(self, candidate: Candidate) -> Event:
        """A trial."""
        return self.event(candidate, scored=False)

    def judge(self, trial: Trial) -> Verdict:
        """Take the bias from the norms that the clipping rule saw."""
        from discreet.noise.gaussian import standard_normal

        half = self.span / 2.0
        reference = self.reference if trial.reference is None else trial.reference
        bias = trial.report.norms.map(self._bias)
        change = bias.map(lambda total: min(max(total - reference, -half), half))
        noise = self.noise_multiplier * float(standard_normal(trial.stream("gate noise"), 1))
        score = change.reveal_to_mechanism() + noise
        return Verdict(
            accepted=score < self.threshold * half,
            score=score,
            reference=max(0.0, reference + score) if self.follows else None,
        )

    def _bias(self, norms: Tensor) -> float:
        # A gradient that is not finite has an infinite norm: it counts as clipped to the full.
        each = norms.square().sum(dim=1).sqrt()
        return float((each.clamp(max=self.cap) / self.cap)[each > self.bound].sum())

    def to_json(self) -> dict[str, float | str | bool | None]:
        """Plain values."""
        return {
            "kind": "bias",
            "bound": self.bound,
            "cap": self.cap,
            "noise_multiplier": self.noise_multiplier,
            "threshold": self.threshold,
            "span": self.span,
            "reference": self.reference,
            "follows": self.follows,
        }

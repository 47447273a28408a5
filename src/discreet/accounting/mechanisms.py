"""What happens until one update is released, as each accounting sees it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.accounting.events import Event, PoissonGaussian, PoissonPureDP, joint_multiplier
from discreet.accounting.selective.events import (
    AnnealedTrial,
    BatchGatedTrial,
    BufferedRelease,
    GatedTrial,
    ScoredTrial,
)
from discreet.accounting.selective.memory import memory_multiplier


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """One way from records to a released update.

    Attributes:
        name: what people call it.
        trial: the event of one trial, charged under `visible`.
        release: the event of one released update, charged under `hidden`.
        claims: the event whose formula the paper charges for one released update; None where no paper has one.
        acceptance: the smallest and the largest probability that a trial is accepted; None where nothing is rejected.
        accepted_per_release: accepted trials for one released update.
    """

    name: str
    trial: Event
    release: Event
    claims: Event | None = None
    acceptance: tuple[float, float] | None = None
    accepted_per_release: int = 1

    @property
    def selects(self) -> bool:
        """Whether a trial may be rejected."""
        return self.acceptance is not None

    def most_releases(self, trials: int) -> int:
        """How many releases so many trials give when candidates pass at the best rate; at least 1."""
        _, high = self.acceptance or (1.0, 1.0)
        return max(1, math.floor(trials * high / self.accepted_per_release))

    def trials(self, releases: int) -> tuple[int, int, int]:
        """How many trials so many releases take when candidates pass at the best, the middle and the worst rate."""
        low, high = self.acceptance or (1.0, 1.0)
        if low <= 0.0:
            raise ValueError(f"{self.name}: a trial may never be accepted; say how many trials there are")
        needed = releases * self.accepted_per_release
        best, middle, worst = (max(1, round(needed / rate)) for rate in (high, (low + high) / 2.0, low))
        return best, middle, worst


def dp_sgd(*, sample_rate: float, noise_multiplier: float) -> Mechanism:
    """DP-SGD and whatever post-processes it."""
    return _plain("dp-sgd", sample_rate, noise_multiplier)


def same_batch(*, sample_rate: float, noise_multipliers: list[float]) -> Mechanism:
    """Several Gaussian releases on one Poisson batch: DP-SAM, quantile clipping, Global-Adapt."""
    return _plain("several Gaussians on one batch", sample_rate, joint_multiplier(noise_multipliers))


def memory(*, sample_rate: float, noise_multiplier: float, fresh_weight: float, groups: int = 1) -> Mechanism:
    """A memory of past releases blended in before the noise (FO-DP-SGD), in layer groups (SMA-DP-SGD)."""
    if groups < 1:
        raise ValueError(f"groups is {groups}; there is at least 1")
    multiplier = memory_multiplier(joint_multiplier([noise_multiplier] * groups), fresh_weight)
    return _plain("private memory", sample_rate, multiplier)


def noisy_selection(*, sample_rate: float, pure_epsilon: float) -> Mechanism:
    """A noisy minimum or maximum with pure differential privacy, on a Poisson batch (rate 1: on all records)."""
    event = PoissonPureDP(sample_rate=sample_rate, epsilon=pure_epsilon)
    return Mechanism(name="noisy selection", trial=event, release=event)


def gated(
    *,
    sample_rate: float,
    noise_multiplier: float,
    gate_rate: float,
    gate_multiplier: float,
    gate_threshold: float = -1.0,
) -> Mechanism:
    """DPSUR: release a candidate if its noisy loss change on an independent batch is below the threshold."""
    trial = GatedTrial(
        sample_rate=sample_rate,
        noise_multiplier=noise_multiplier,
        gate_rate=gate_rate,
        gate_multiplier=gate_multiplier,
        gate_threshold=gate_threshold,
    )
    return Mechanism(
        name="dpsur",
        trial=trial,
        release=trial,
        claims=trial,
        acceptance=(trial.acceptance.low, trial.acceptance.high),
    )


def annealed(
    *, sample_rate: float, noise_multiplier: float, gate_rate: float, gate_multiplier: float, coldness: float
) -> Mechanism:
    """SA-DP-SGD: release a candidate that looks better, and a worse one by a coin that gets colder.

    The paper's own formula is not known here, so nothing is claimed for it.
    """
    trial = AnnealedTrial(
        sample_rate=sample_rate,
        noise_multiplier=noise_multiplier,
        gate_rate=gate_rate,
        gate_multiplier=gate_multiplier,
        coldness=coldness,
    )
    low, high = trial.acceptance.low, trial.acceptance.high
    return Mechanism(name="sa-dp-sgd", trial=trial, release=trial, acceptance=(low, high))


def batch_gated(
    *,
    sample_rate: float,
    noise_multiplier: float,
    gate_multiplier: float,
    gate_threshold: float,
    gate_span: float = 1.0,
    one_sided: bool = False,
    private_reference: bool = False,
) -> Mechanism:
    """DPSR-CG: release a candidate if a noisy metric of its own batch is good enough."""
    trial = BatchGatedTrial(
        sample_rate=sample_rate,
        noise_multiplier=noise_multiplier,
        gate_multiplier=gate_multiplier,
        gate_threshold=gate_threshold,
        gate_span=gate_span,
        one_sided=one_sided,
        private_reference=private_reference,
    )
    acceptance = (trial.gate.low, trial.gate.high)
    return Mechanism(name="dpsr-cg", trial=trial, release=trial, claims=trial, acceptance=acceptance)


def buffered(
    *,
    sample_rate: float,
    noise_multiplier: float,
    gate_rate: float,
    gate_multiplier: float,
    gate_threshold: float = -1.0,
    candidates: int = 2,
    tie: float = 0.0,
    charge_all: bool = False,
) -> Mechanism:
    """DPSGD-BR: fill a buffer with accepted candidates and release the one with the best noisy score.

    Under `visible` the accepted candidates are published with their scores, and the choice is post-processing.
    """
    single = gated(
        sample_rate=sample_rate,
        noise_multiplier=noise_multiplier,
        gate_rate=gate_rate,
        gate_multiplier=gate_multiplier,
        gate_threshold=gate_threshold,
    )
    shared = {name: value for name, value in single.trial.to_json().items() if name != "kind"}
    release = BufferedRelease(**shared, candidates=candidates, tie=tie, charge_all=charge_all)
    return Mechanism(
        name="dpsgd-br",
        trial=ScoredTrial(**shared) if candidates > 1 else single.trial,
        release=release if candidates > 1 else single.release,
        claims=single.claims,
        acceptance=single.acceptance,
        accepted_per_release=candidates,
    )


def _plain(name: str, sample_rate: float, noise_multiplier: float) -> Mechanism:
    event = PoissonGaussian(sample_rate=sample_rate, noise_multiplier=noise_multiplier)
    return Mechanism(name=name, trial=event, release=event, claims=event)

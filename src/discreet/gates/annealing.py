"""SA-DP-SGD's test: a candidate that looks better passes, a worse one by a coin that gets colder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.accounting.events import PoissonGaussian, Several
from discreet.accounting.selective.events import AnnealedTrial
from discreet.errors import UserError
from discreet.gates.gate import Candidate, Trial, Verdict
from discreet.gates.scores import LossChange, LossChangeSum

if TYPE_CHECKING:
    from discreet.accounting import Event


@dataclass(frozen=True, kw_only=True)
class Cooling:
    """The inverse temperature: it grows by a step now and then, up to a largest value.

    Attributes:
        start: at the first trial.
        step: by how much it grows at a time.
        most: where it stops.
        every: how many trials share a temperature, and so an event.
    """

    start: float
    step: float
    most: float
    every: int = 1

    def __post_init__(self) -> None:
        if self.every < 1:
            raise UserError(f"every of the cooling is {self.every}; it is a whole number of at least 1")
        for name in ("start", "step", "most"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise UserError(f"{name} of the cooling is {value}; it is a finite number of at least 0")

    def at(self, number: int) -> float:
        """The coldness of a trial; public."""
        return min(self.most, self.start + self.step * (number // self.every))


@dataclass(frozen=True, kw_only=True)
class _Annealing:
    """What both tests share.

    Attributes:
        noise_multiplier: sigma_v.
        cooling: the coldness per unit of C_v, by trial.
    """

    change: LossChange
    noise_multiplier: float
    cooling: Cooling

    def judge(self, trial: Trial) -> Verdict:
        """Score the candidate; toss the coin if it looks worse."""
        score = self.change.noisy(trial, self.noise_multiplier)
        coin = _uniform(trial) if score > 0.0 else 0.0
        passes = score <= 0.0 or coin < math.exp(-self.cooling.at(trial.number) * score)
        return Verdict(accepted=passes, score=score)

    def to_json(self) -> dict[str, float | str | bool | None]:
        """Plain values."""
        return {
            "kind": "annealing",
            "rate": self.change.sampler.rate,
            "bound": self.change.bound,
            "noise_multiplier": self.noise_multiplier,
            "coldness": self.cooling.start,
            "cooling": self.cooling.step,
            "coldest": self.cooling.most,
            "cooling_every": self.cooling.every,
        }


@dataclass(frozen=True, kw_only=True)
class AnnealedLossTest(_Annealing):
    """Annealing on the clipped mean loss change; nothing but the outcome and an accepted candidate is released.

    Guarantee: `LossChange` is the metric of `accounting.selective.gates.AnnealingGate`.
    """

    @property
    def releases_scores(self) -> bool:
        """No."""
        return False

    def event(self, candidate: Candidate, *, scored: bool) -> Event:
        """An annealed trial."""
        if scored:
            raise UserError("annealed trials are not charged for the release of scores")
        return AnnealedTrial(
            sample_rate=candidate.sample_rate,
            noise_multiplier=candidate.noise_multiplier,
            gate_rate=self.change.sampler.rate,
            gate_multiplier=self.noise_multiplier,
            coldness=self.cooling.at(candidate.number),
        )

    def release_event(self, candidate: Candidate) -> Event:
        """The same mechanism under `hidden`."""
        return self.event(candidate, scored=False)

    def claimed_event(self, candidate: Candidate) -> Event:
        """A trial."""
        return self.event(candidate, scored=False)


@dataclass(frozen=True, kw_only=True)
class AnnealedSumTest(_Annealing):
    """Annealing on the sum of clipped loss changes; every candidate and every score is charged as if released.

    Guarantee: two Poisson-sampled Gaussians on independent batches. Whatever is done with candidate and score, a
    forced acceptance after many rejections included, is post-processing.

    Attributes:
        patience: after so many rejections in a row the next candidate passes unseen.
    """

    change: LossChangeSum
    patience: int | None = None

    def __post_init__(self) -> None:
        if self.patience is not None and self.patience < 1:
            raise UserError(f"patience is {self.patience}; it is a whole number of at least 1")

    @property
    def releases_scores(self) -> bool:
        """Yes, all of them are paid for."""
        return True

    def event(self, candidate: Candidate, *, scored: bool) -> Event:
        """Both Gaussians."""
        return Several(
            events=(
                PoissonGaussian(
                    sample_rate=candidate.sample_rate, noise_multiplier=candidate.noise_multiplier
                ),
                PoissonGaussian(sample_rate=self.change.sampler.rate, noise_multiplier=self.noise_multiplier),
            )
        )

    def release_event(self, candidate: Candidate) -> Event:
        """Refused: a sum has no bound, so rejections could not be kept for nothing."""
        raise UserError(
            'scores "per-record" need accounting "visible": the acceptance probability has no lower bound. '
            'Use scores "total", without patience'
        )

    def claimed_event(self, candidate: Candidate) -> Event:
        """Both Gaussians: nothing else is known of the paper."""
        return self.event(candidate, scored=False)

    def judge(self, trial: Trial) -> Verdict:
        """As the base does, but give in after `patience` rejections."""
        verdict = super().judge(trial)
        if self.patience is not None and trial.rejected_in_a_row >= self.patience:
            return Verdict(accepted=True, score=verdict.score)
        return verdict


def _uniform(trial: Trial) -> float:
    return (int(trial.stream("gate coin").words(1)[0]) & (2**63 - 1)) * 2.0**-63

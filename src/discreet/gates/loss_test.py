"""DPSUR's test: a candidate passes if the noisy, tightly clipped change of its loss is below a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.accounting.selective.events import GatedTrial, ScoredTrial
from discreet.gates.gate import Candidate, Trial, Verdict
from discreet.gates.scores import LossChange

if TYPE_CHECKING:
    from discreet.accounting import Event
    from discreet.schedules import Phase


@dataclass(frozen=True, kw_only=True)
class LossTest:
    """Accept if the noisy loss change is below beta C_v.

    Guarantee: `LossChange` is the metric of `accounting.selective.gates.LossGate`, with the same beta, and sigma_v as
    `facts` gives it to the event: the noise's deviation over 2 C_v, whichever way it was set.

    Attributes:
        change: the loss change, with its batch and C_v.
        noise_multiplier: sigma_v; the noise's deviation is 2 C_v sigma_v.
        threshold: beta.
        unscaled: the noise's deviation is sigma_v itself, as equation 12 of DPSGD-BR prints it. With a small C_v the
            test then tells next to nothing.
    """

    change: LossChange
    noise_multiplier: float
    threshold: float
    unscaled: bool = False

    @property
    def releases_scores(self) -> bool:
        """No: the scores of rejected candidates are told to nobody."""
        return False

    def event(self, candidate: Candidate, *, scored: bool) -> Event:
        """A gated trial; one whose accepted candidate comes with its score, if asked."""
        return (ScoredTrial if scored else GatedTrial)(**self.facts(candidate))

    def release_event(self, candidate: Candidate) -> Event:
        """The same mechanism, of which `hidden` accounting sees the accepted candidate only."""
        return GatedTrial(**self.facts(candidate))

    def claimed_event(self, candidate: Candidate) -> Event:
        """A trial as the papers charge it, with sigma_v as they print it."""
        return GatedTrial(
            **{
                **self.facts(candidate),
                "gate_multiplier": self.noise_multiplier * candidate.phase.gate_noise,
            }
        )

    def facts(self, candidate: Candidate) -> dict[str, float]:
        """The fields of the events, for this candidate."""
        phase = candidate.phase
        return {
            "sample_rate": candidate.sample_rate,
            "noise_multiplier": candidate.noise_multiplier,
            "gate_rate": self.change.sampler.rate,
            "gate_multiplier": self._noise(phase),
            "gate_threshold": self._threshold(phase),
        }

    def judge(self, trial: Trial) -> Verdict:
        """Score the candidate and compare with the threshold."""
        score = self.change.noisy(trial, self._noise(trial.phase))
        return Verdict(accepted=score < self._threshold(trial.phase), score=score)

    def scale(self, phase: Phase) -> tuple[float, float]:
        """The threshold in force, and the deviation of the scores' noise, in units of C_v."""
        return self._threshold(phase), 2.0 * self._noise(phase)

    def _noise(self, phase: Phase) -> float:
        scale = 2.0 * self.change.bound if self.unscaled else 1.0
        return self.noise_multiplier * phase.gate_noise / scale

    def _threshold(self, phase: Phase) -> float:
        return self.threshold * phase.gate_threshold

    def to_json(self) -> dict[str, float | str | bool | None]:
        """Plain values."""
        return {
            "kind": "loss",
            "rate": self.change.sampler.rate,
            "bound": self.change.bound,
            "noise_multiplier": self.noise_multiplier,
            "threshold": self.threshold,
            "unscaled": self.unscaled,
        }

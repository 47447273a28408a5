"""How much an update has improved the model, from something that is public, released, or noised and charged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from discreet.accounting.events import PoissonGaussian
from discreet.sampling import PoissonSampler

if TYPE_CHECKING:
    from torch import Tensor

    from discreet.accounting import Event
    from discreet.gradients.private import Private
    from discreet.noise.key import Stream

_SMOOTHING = 0.9


class Sight(Protocol):
    """What a measurement of progress may look at."""

    @property
    def scores(self) -> Sequence[float]:
        """The released noisy scores of the candidates that the update was chosen from."""
        ...

    @property
    def gate(self) -> tuple[float, float]:
        """Threshold and deviation of the noise of those scores, in units of C_v."""
        ...

    def public_accuracy(self) -> float:
        """The share of public records that the model gets right."""
        ...

    def correct(self, indices: Tensor) -> Private[int]:
        """How many of these private records the model gets right."""
        ...

    def stream(self, purpose: str) -> Stream:
        """Random bits for one purpose."""
        ...


class Progress(Protocol):
    """A measurement after each update, and the progress that follows from it and the one before."""

    @property
    def uses_scores(self) -> bool:
        """Whether it looks at the scores of accepted candidates, which the trials then have to be charged for."""
        ...

    @property
    def charge(self) -> Event | None:
        """What one measurement costs; None for nothing."""
        ...

    def measure(self, sight: Sight, before: float | None) -> float:
        """The new measurement; `before` is the last one."""
        ...

    def progress(self, before: float | None, now: float, sight: Sight) -> float:
        """The progress; the unit is the decay's trigger's."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        ...


class _Accuracy:
    """Progress in percentage points of an accuracy."""

    uses_scores: ClassVar[bool] = False

    def progress(self, before: float | None, now: float, sight: Sight) -> float:
        """Points won since the last measurement; none at the first."""
        return 0.0 if before is None else 100.0 * (now - before)


@dataclass(frozen=True, kw_only=True)
class PublicAccuracy(_Accuracy):
    """Accuracy on records that are public or declared not to be private.

    Guarantee: of the private records it sees nothing but released models, so it costs nothing.
    """

    charge: ClassVar[None] = None

    def measure(self, sight: Sight, before: float | None) -> float:
        """The share of public records that the model gets right."""
        return sight.public_accuracy()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": "public"}


@dataclass(frozen=True, kw_only=True)
class NoisyAccuracy(_Accuracy):
    """Accuracy on a fresh Poisson batch of the private records, with noise.

    Guarantee: one record changes the number of hits by at most 1, N(0, noise_multiplier^2) is added, and the sum is
    divided by the public expected size of the batch. `charge` is that Gaussian on that batch.
    """

    sampler: PoissonSampler
    noise_multiplier: float

    @property
    def charge(self) -> Event:
        """One Poisson-sampled Gaussian."""
        return PoissonGaussian(sample_rate=self.sampler.rate, noise_multiplier=self.noise_multiplier)

    def measure(self, sight: Sight, before: float | None) -> float:
        """The noisy share of hits."""
        from discreet.noise.gaussian import standard_normal

        hits = sight.correct(self.sampler.draw(sight.stream("progress batch")))
        noise = self.noise_multiplier * float(standard_normal(sight.stream("progress noise"), 1))
        return (hits.reveal_to_mechanism() + noise) / self.sampler.expected_batch_size

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": "accuracy", "rate": self.sampler.rate, "noise_multiplier": self.noise_multiplier}


@dataclass(frozen=True, kw_only=True)
class ReleasedScores:
    """The noisy loss changes of accepted candidates, which were released with them.

    The smoothed mean of the scores is set against what it would be if every loss change were +C_v (progress 0) and if
    every one were -C_v (progress 1): accepted scores lie below the threshold, so their mean alone says little.

    Guarantee: a function of released values; the trials are charged with their accepted scores.
    """

    uses_scores: ClassVar[bool] = True
    charge: ClassVar[None] = None

    def measure(self, sight: Sight, before: float | None) -> float:
        """The smoothed mean score, in units of C_v."""
        mean = sum(sight.scores) / len(sight.scores)
        return mean if before is None else _SMOOTHING * before + (1.0 - _SMOOTHING) * mean

    def progress(self, before: float | None, now: float, sight: Sight) -> float:
        """The share of the best possible improvement."""
        worst, best = (_mean_below(*sight.gate, metric) for metric in (1.0, -1.0))
        return (worst - now) / (worst - best)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": "scores"}


def _mean_below(threshold: float, deviation: float, metric: float) -> float:
    """E[s | s < threshold] for s ~ N(metric, deviation^2)."""
    from scipy.special import log_ndtr

    z = (threshold - metric) / deviation
    log_density = -z * z / 2.0 - math.log(math.sqrt(2.0 * math.pi))
    return metric - deviation * math.exp(log_density - float(log_ndtr(z)))

"""What a gate tells: how likely it lets a candidate pass, between which two numbers, and how far one record moves that.

A gate on an *independent* validation batch (`LossGate`, `AnnealingGate`) is given by the range [low, high] of its
acceptance probability and the rate of its batch: with the record the weight is (1 - q_v) a + q_v a_1, both in the
range. A gate on the *training* batch itself (`BatchGate`) is given by the range and by the ratio a(B + x) / a(B).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from discreet.accounting.events import checked_number

LARGEST_RATIO = 1e12


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """The range of the acceptance probability a(w); `sample_rate` is the rate of the validation batch.

    Attributes:
        low, high: the smallest and the largest acceptance probability.
        low_rejection, high_rejection: 1 - high and 1 - low, each with its own digits.
    """

    sample_rate: float
    low: float
    high: float
    low_rejection: float
    high_rejection: float

    def __post_init__(self) -> None:
        checked_number("sample_rate", self.sample_rate, low=0.0, high=1.0)
        if not 0.0 <= self.low <= self.high <= 1.0 or self.high == 0.0:
            raise ValueError(
                "the acceptance probability must have a range 0 <= low <= high <= 1 with high > 0, "
                f"not [{self.low!r}, {self.high!r}]: a gate that never accepts releases nothing"
            )

    @property
    def kappa(self) -> float:
        """The largest ratio of two acceptance probabilities."""
        return self.high / self.low if self.low > 0.0 else math.inf

    @property
    def moderate(self) -> bool:
        """Whether acceptances differ by a factor that floats can follow; beyond it, only simple bounds are used."""
        return self.kappa <= LARGEST_RATIO

    @property
    def moderate_rejection(self) -> bool:
        """Whether rejections do."""
        return self.low_rejection > 0.0 and self.high_rejection / self.low_rejection <= LARGEST_RATIO


@dataclass(frozen=True, kw_only=True)
class LossGate:
    """Accept if the clipped loss change plus noise is below the threshold (DPSUR; the filter of DPSGD-BR).

    Guarantee: the metric is clipped to [-C_v, C_v] before the noise N(0, (2 C_v sigma_v)^2), a non-finite metric
    counts as +C_v, the validation batch is a fresh Poisson sample in every trial, an empty one gives a fixed metric.

    Attributes:
        sample_rate: q_v, the rate of the validation batch.
        noise_multiplier: sigma_v.
        threshold: beta; the noisy metric must be below beta C_v.
    """

    sample_rate: float
    noise_multiplier: float
    threshold: float

    def __post_init__(self) -> None:
        rate = checked_number("gate sample_rate", self.sample_rate, low=0.0, high=1.0)
        noise = checked_number("gate noise_multiplier", self.noise_multiplier, low=0.0, open_low=True)
        threshold = checked_number("gate threshold", self.threshold, low=-math.inf)
        for name, value in (("sample_rate", rate), ("noise_multiplier", noise), ("threshold", threshold)):
            object.__setattr__(self, name, value)

    @property
    def a_min(self) -> float:
        """The acceptance probability of the worst metric, +C_v."""
        return float(ndtr((self.threshold - 1.0) / (2.0 * self.noise_multiplier)))

    @property
    def a_max(self) -> float:
        """The acceptance probability of the best metric, -C_v."""
        return float(ndtr((self.threshold + 1.0) / (2.0 * self.noise_multiplier)))

    @property
    def kappa(self) -> float:
        """a_max / a_min; infinite where a_min is too small for a float."""
        return self.acceptance().kappa

    def acceptance(self) -> Acceptance:
        """The range of the acceptance probability."""
        scale = 2.0 * self.noise_multiplier
        return Acceptance(
            sample_rate=self.sample_rate,
            low=self.a_min,
            high=self.a_max,
            low_rejection=float(ndtr(-(self.threshold + 1.0) / scale)),
            high_rejection=float(ndtr(-(self.threshold - 1.0) / scale)),
        )


@dataclass(frozen=True, kw_only=True)
class AnnealingGate:
    """Accept a noisy loss change s <= 0 always, a worse one with probability exp(-coldness s / C_v) (SA-DP-SGD).

    Guarantee: as for `LossGate`. The metric is clipped and noised first; the coin uses the noisy value only.

    Attributes:
        sample_rate: q_v, the rate of the validation batch.
        noise_multiplier: sigma_v; the noise is N(0, (2 C_v sigma_v)^2).
        coldness: the inverse temperature in units of 1/C_v; public.
    """

    sample_rate: float
    noise_multiplier: float
    coldness: float

    def __post_init__(self) -> None:
        rate = checked_number("gate sample_rate", self.sample_rate, low=0.0, high=1.0)
        noise = checked_number("gate noise_multiplier", self.noise_multiplier, low=0.0, open_low=True)
        coldness = checked_number("gate coldness", self.coldness, low=0.0)
        for name, value in (("sample_rate", rate), ("noise_multiplier", noise), ("coldness", coldness)):
            object.__setattr__(self, name, value)

    def acceptance(self) -> Acceptance:
        """The range of the acceptance probability."""
        low, high = self._accepts(1.0), self._accepts(-1.0)
        return Acceptance(
            sample_rate=self.sample_rate,
            low=low,
            high=high,
            low_rejection=1.0 - high,
            high_rejection=1.0 - low,
        )

    def _accepts(self, metric: float) -> float:
        """Phi(-m/t) + E[exp(-c s); s > 0] for s ~ N(m, t^2), in units of C_v."""
        deviation, cold = 2.0 * self.noise_multiplier, self.coldness
        log_coin = cold * (cold * deviation**2 / 2.0 - metric) + log_ndtr(
            (metric - cold * deviation**2) / deviation
        )
        return float(min(1.0, ndtr(-metric / deviation) + np.exp(min(0.0, log_coin))))


@dataclass(frozen=True, kw_only=True)
class BatchGate:
    """Accept by a metric of the training batch itself (DPSR-CG's clipping bias).

    Guarantee: the metric is clipped to a public interval of width `span` sensitivities, then gets noise of
    `noise_multiplier` sensitivities; one record moves the clipped metric by at most one sensitivity. The reference
    that it is compared with is public, or privatised and charged.

    Attributes:
        noise_multiplier: sigma_v, in units of the sensitivity of the metric.
        threshold: beta; the noisy metric must lie below beta times half the span (0 is the middle of the interval).
        span: the width of the clipping interval in sensitivities (2 C_v / sensitivity), at least 1.
        one_sided: the metric is a *sum* of non-negative terms and a larger one is accepted less often, so a record
            can only lower the acceptance.
    """

    noise_multiplier: float
    threshold: float
    span: float = 1.0
    one_sided: bool = False

    def __post_init__(self) -> None:
        noise = checked_number("gate noise_multiplier", self.noise_multiplier, low=0.0, open_low=True)
        threshold = checked_number("gate threshold", self.threshold, low=-math.inf)
        span = checked_number("gate span", self.span, low=1.0)
        for name, value in (("noise_multiplier", noise), ("threshold", threshold), ("span", span)):
            object.__setattr__(self, name, value)

    @property
    def _ends(self) -> tuple[float, float]:
        scale = self.span / (2.0 * self.noise_multiplier)
        return (self.threshold - 1.0) * scale, (self.threshold + 1.0) * scale

    @property
    def low(self) -> float:
        """The smallest acceptance probability."""
        return float(ndtr(self._ends[0]))

    @property
    def high(self) -> float:
        """The largest acceptance probability."""
        return float(ndtr(self._ends[1]))

    @property
    def low_rejection(self) -> float:
        """1 - high, with its own digits."""
        return float(ndtr(-self._ends[1]))

    @property
    def high_rejection(self) -> float:
        """1 - low, with its own digits."""
        return float(ndtr(-self._ends[0]))

    @property
    def low_ratio(self) -> float:
        """r_lo, the smallest a(B + x) / a(B): Phi is log-concave, so the steepest step is at its lower end."""
        low = self._ends[0]
        return float(np.exp(log_ndtr(low) - log_ndtr(low + 1.0 / self.noise_multiplier)))

    @property
    def moderate(self) -> bool:
        """Whether floats can follow the range of the acceptance probability."""
        return self.low * LARGEST_RATIO >= self.high and self.low_ratio * LARGEST_RATIO >= 1.0

    @property
    def high_ratio(self) -> float:
        """r_hi, the largest a(B + x) / a(B)."""
        if self.one_sided:
            return 1.0
        return 1.0 / self.low_ratio if self.low_ratio > 0.0 else math.inf

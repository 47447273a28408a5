"""Choosing between accepted candidates (DPSGD-BR): a buffer of n candidates, the one with the best score is released.

`hidden` accounting has two sound ways, both per choice: charge every accepted candidate with its score, or charge the
chosen candidate only, whose weight is that of a more selective gate.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from discreet.accounting.events import checked_number
from discreet.accounting.selective.corners import Corners, acceptance_corners
from discreet.accounting.selective.gates import LARGEST_RATIO, Acceptance, LossGate
from discreet.accounting.selective.likelihood import Floats, LikelihoodRatio
from discreet.errors import UserError

_POINTS = 400
_DEVIATIONS = 14.0
_SAFETY = 1e-9
_METRICS = 128


@dataclass(frozen=True, kw_only=True)
class BufferedChoice:
    """Fill a buffer with `candidates` accepted candidates, release the one with the smallest noisy loss change.

    Attributes:
        gate: Which candidates enter the buffer.
        candidates: n, the size of the buffer.
        tie: theta in units of C_v: of two scores that differ by less, a fair coin decides. For n = 2 only.
    """

    gate: LossGate
    candidates: int = 2
    tie: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.candidates, int) or isinstance(self.candidates, bool) or self.candidates < 1:
            raise ValueError(f"candidates must be a whole number of at least 1, not {self.candidates!r}")
        object.__setattr__(self, "tie", checked_number("tie", self.tie, low=0.0))
        if self.tie > 0.0 and self.candidates > 2:
            raise ValueError(f"tie must be 0 for more than 2 candidates, not {self.tie!r}: no bound is known")


def chosen_corners(law: LikelihoodRatio, choice: BufferedChoice) -> Corners:
    """The corners of the chosen candidate's weight, for the bounds of `hidden` and `hidden_profile`.

    Theorem buffered-choice. The chosen candidate has the density p(w) E_V[ integral over s < t of N(s; m_V(w)) n
    G_D(s)^(n-1) ds ], with G_D the tail of the other accepted scores. For a given G_D that is a gate whose acceptance
    has the largest ratio kappa_G (below); under D' its batch may hold the record, as for any gate. The step from G_D
    to G_D' multiplies the weight by a factor of range exp(e_G): a third coordinate of the corners.
    """
    if choice.candidates == 1:
        return acceptance_corners(choice.gate.acceptance())
    largest, reach = _selectivity(choice), (choice.candidates - 1) * _tail_range(law, choice.gate)
    if not (largest <= LARGEST_RATIO and reach <= math.log(LARGEST_RATIO)):
        raise UserError(
            f"gate_multiplier {choice.gate.noise_multiplier:g} is too small, or gate_threshold "
            f"{choice.gate.threshold:g} too far from 0, to charge the chosen candidate only: add noise to the gate, or "
            "charge all candidates"
        )
    stretch = math.exp(reach)
    # Only the ratio matters, so the scale of the weights is free.
    like_a_gate = Acceptance(
        sample_rate=choice.gate.sample_rate,
        low=0.5 / largest,
        high=0.5,
        low_rejection=0.5,
        high_rejection=1.0 - 0.5 / largest,
    )
    return acceptance_corners(like_a_gate, stretch=stretch)


def _tail_range(law: LikelihoodRatio, gate: LossGate) -> float:
    """e_G, the range of log G_D'(s) / G_D(s) over s.

    The tails of two accepted scores, with metrics anywhere in [-C_v, C_v], have a ratio that is monotone in s, because
    the scores have a monotone likelihood ratio. So it lies between that far below the threshold t, at most kappa, and
    that of the densities at t, which is largest between the metric nearest to t and the one farthest from it. It
    bounds how much the tail reweights both the training and the validation batch of the other candidate.
    """
    kappa, far = gate.kappa, abs(gate.threshold)
    exponent = (1.0 + far) ** 2 / 8.0 if far <= 1.0 else far / 2.0
    largest = max(kappa, math.exp(min(exponent / gate.noise_multiplier**2, 700.0)))
    if not largest <= LARGEST_RATIO:
        return math.inf
    low, high = law.mean_range(largest)
    return math.log(high / low) + log_range(gate.sample_rate, largest)


def log_range(rate: float, kappa: float) -> float:
    """e_v: the range of the logarithm of (1 - q_v) + q_v a_1 / a for a_1 / a in [1/kappa, kappa]."""
    return math.log1p(rate * (kappa - 1.0)) - math.log1p(rate * (1.0 / kappa - 1.0))


def _selectivity(choice: BufferedChoice) -> float:
    """kappa_G: the largest ratio of the weights that two candidates can have, for any tail G_D; rounded up.

    A weight is psi_G(m) = integral over s < t of N(s; m) G(s)^(n-1) ds. G_D is a mixture of the tails of other
    candidates; the ratio psi_G(-C_v) / psi_G(C_v) is largest when G falls fastest, for metrics of -C_v. With ties G
    is averaged over s +- theta, for which that order is not proven: the other metric's range is covered by intervals.
    """
    gate, n = choice.gate, choice.candidates
    deviation = 2.0 * gate.noise_multiplier  # of the score, in units of C_v
    t = gate.threshold
    points, weights = np.polynomial.legendre.leggauss(_POINTS)

    def tail(s: Floats, other: float) -> Floats:
        """P(score > s | accepted) for a candidate with that metric."""
        accepted = ndtr((t - other) / deviation)
        below = ndtr((np.minimum(s, t) - other) / deviation)
        return np.asarray(np.clip(1.0 - below / accepted, 0.0, 1.0)) if accepted > 0.0 else np.zeros_like(s)

    def weight(metric: float, other: float) -> float:
        total = 0.0
        middle = min(t, metric)
        for low, high in ((middle - _DEVIATIONS * deviation, middle), (middle, t)):
            if high > low:
                # Ties move the kink of G to t - theta: split there.
                for left, right in _pieces(low, high, t - choice.tie):
                    s = (left + right) / 2.0 + points * (right - left) / 2.0
                    density = np.exp(-(((s - metric) / deviation) ** 2) / 2.0) / (
                        deviation * math.sqrt(2.0 * math.pi)
                    )
                    g = (tail(s - choice.tie, other) + tail(s + choice.tie, other)) / 2.0
                    total += float((weights * density * g ** (n - 1)).sum() * (right - left) / 2.0)
        return total

    if choice.tie == 0.0:
        pairs = [(weight(-1.0, -1.0), weight(1.0, -1.0))]
    else:
        edges = np.linspace(-1.0, 1.0, _METRICS + 1)
        # G grows with the other metric.
        pairs = [(weight(-1.0, high), weight(1.0, low)) for low, high in itertools.pairwise(edges)]
    return max((most / least if least > 0.0 else math.inf) for most, least in pairs) * (1.0 + _SAFETY)


def _pieces(low: float, high: float, kink: float) -> list[tuple[float, float]]:
    return [(low, kink), (kink, high)] if low < kink < high else [(low, high)]

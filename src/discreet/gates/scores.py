"""Noisy scores of candidates: how much the loss changes on a fresh validation batch, bounded before the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.sampling import PoissonSampler

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from discreet.gates.gate import Trial
    from discreet.gradients.private import Private


@dataclass(frozen=True, kw_only=True)
class LossChange:
    """The change of the mean loss from the present weights to the candidate's, in units of C_v.

    Guarantee: the validation batch is a fresh Poisson sample, independent of the training batch, in every trial. The
    change lies in [-1, 1]: it is clipped, one that is not finite counts as the worst, +1, and an empty batch gives
    0. So one record moves it by at most 2, and `noisy` adds N(0, (2 sigma_v)^2), drawn from the trial's own stream.

    Attributes:
        sampler: the validation batch, rate q_v.
        bound: C_v.
    """

    sampler: PoissonSampler
    bound: float

    def noisy(self, trial: Trial, noise_multiplier: float) -> float:
        """Compare the two models on the same batch; afterwards the model has the candidate's weights."""
        change = self.compare(trial).map(self._clipped_mean)
        return change.reveal_to_mechanism() + 2.0 * noise_multiplier * _normal(trial)

    def compare(self, trial: Trial) -> Private[Tensor]:
        """Each validation record's loss at the candidate's weights minus that at the present ones, in float64."""
        batch = self.sampler.draw(trial.stream("gate batch"))
        before = trial.losses(batch)
        trial.propose()
        after = trial.losses(batch)
        return after.map(lambda new: new.double() - before.reveal_to_mechanism().double())

    def _clipped_mean(self, changes: Tensor) -> float:
        if not len(changes):
            return 0.0
        mean = float(changes.mean()) / self.bound
        return min(max(mean, -1.0), 1.0) if math.isfinite(mean) else 1.0


@dataclass(frozen=True, kw_only=True)
class LossChangeSum(LossChange):
    """The sum of the records' loss changes, each clipped to C_v, over the expected size of the batch.

    Guarantee: the batch is as for `LossChange`. Each record's change is clipped to [-1, 1] in units of C_v, one that
    is not a number counts as +1, so one record moves the sum by at most 1, and `noisy` adds N(0, sigma_v^2). The sum
    itself is not bounded: the score of every trial is taken to be released.
    """

    def noisy(self, trial: Trial, noise_multiplier: float) -> float:
        """Compare the two models on the same batch; afterwards the model has the candidate's weights."""
        total = self.compare(trial).map(self._clipped_sum)
        noisy = total.reveal_to_mechanism() + noise_multiplier * _normal(trial)
        return noisy / self.sampler.expected_batch_size

    def _clipped_sum(self, changes: Tensor) -> float:
        each: torch.Tensor = (changes / self.bound).nan_to_num(nan=1.0).clamp(-1.0, 1.0)
        return float(each.sum())


def _normal(trial: Trial) -> float:
    from discreet.noise.gaussian import standard_normal

    return float(standard_normal(trial.stream("gate noise"), 1))

"""A data set and a loss for which DPSUR's own formula is too small, and the audit that proves it.

The gate looks at one record among others on a validation batch. Here thirty equal records and one more, x, have linear
losses in a single weight, w for the thirty and -1000 w for x. Training is nearly silent: its noise is forty times
what a record can add. So a candidate moves w up or down by a fair coin of noise. Without x, moves down look good and
moves up bad, as far as the gate's clipped score can tell. With x in the validation batch it is the other way round. The
direction of an accepted move, which everybody sees in the released weights, is a coin whose bias depends on x.

The paper charges an accepted move for one noisy score on a sampled batch, as if rejections were free. The audit counts
directions over many accepted moves of real runs with and without x, and composes the two coins.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.stats import binom
from torch import Tensor, nn

from discreet.accounting import Budget, epsilon
from discreet.accounting.selective.claimed import WHOLE_ORDERS, claimed_epsilon
from discreet.audit.bounds import epsilon_of_errors, proportion
from discreet.audit.game import Progress
from discreet.data import Records
from discreet.recipes import DPSUR
from discreet.training.fit import start

if TYPE_CHECKING:
    from discreet.data import Description

_OTHERS = 30
_AGAINST = -1000.0
_ANY_BUDGET = 1e6


@dataclass(frozen=True, kw_only=True)
class SelectionAudit:
    """What the directions of accepted moves prove.

    Attributes:
        updates: T, how many accepted updates the epsilons are for.
        delta: where they hold.
        claimed: what DPSUR's paper says of T updates; no guarantee.
        proven: the lower bound.
        hidden: the certified epsilon of T updates if number and timing of trials stay secret.
        visible: the certified epsilon of the trials that T updates took on average.
        confidence: of `proven`.
        up_without: the most that the share of accepted moves upwards can be without x.
        up_with: the least that it can be with x.
        moves: accepted moves that were looked at, without x and with it.
    """

    updates: int
    delta: float
    claimed: float
    proven: float
    hidden: float
    visible: float
    confidence: float
    up_without: float
    up_with: float
    moves: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def recipe(trials: int) -> DPSUR:
    """DPSUR with a strict gate."""
    return DPSUR(
        expected_batch_size=1,
        releases=trials,
        noise_multiplier=40.0,
        clip_norm=1.0,
        learning_rate=1.0,
        momentum=0.0,
        gate_batch_size=20,
        gate_clip=1e-3,
        gate_noise_multiplier=2.0,
        gate_threshold=-7.0,
    )


def audit_selection(
    *,
    trials: int = 40_000,
    updates: int = 19,
    delta: float = 1e-5,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> SelectionAudit:
    """Run DPSUR without x and with it, so many trials each, and bound epsilon of so many accepted updates."""
    plan = recipe(trials).plan(_OTHERS + 1, Budget(epsilon=_ANY_BUDGET, delta=delta))
    each = 1.0 - (1.0 - confidence) / 2.0
    counts = []
    for number, present in enumerate((False, True)):
        run = start(_OneWeight(), _Few(present=present), plan, loss=_linear, seed=2 * seed + number)
        before, up, moves = 0.0, 0, 0
        for release in run:
            if release.updated:
                after = float(run.state.parameters[0])
                up, moves, before = up + (after > before), moves + 1, after
            if progress is not None and release.number % 1000 == 0:
                progress(number * trials + release.number, 2 * trials)
        counts.append((up, moves))
    most, least = proportion(*counts[0], each)[1], proportion(*counts[1], each)[0]
    event, needed = plan.event(0), math.ceil(updates * trials / min(moves for _, moves in counts))
    return SelectionAudit(
        updates=updates,
        delta=delta,
        claimed=claimed_epsilon([(event, updates)], delta, orders=WHOLE_ORDERS),
        proven=composed_coins(most, least, updates, delta),
        hidden=epsilon([(event, updates)], delta, accounting="hidden"),
        visible=epsilon([(event, needed)], delta, accounting="visible"),
        confidence=confidence,
        up_without=most,
        up_with=least,
        moves=(counts[0][1], counts[1][1]),
    )


def composed_coins(without: float, present: float, tosses: int, delta: float) -> float:
    """The epsilon at `delta` of so many independent tosses of one of two coins, by the best test on their number.

    If the true biases lie further apart than the two given, so does epsilon: each toss of the nearer coins can be made
    from one of the true ones.
    """
    if not without < present:
        return 0.0
    heads = np.arange(tosses + 2)
    return max(
        epsilon_of_errors(float(alarms), float(misses), delta)
        for alarms, misses in zip(
            binom.sf(heads - 1, tosses, without), binom.cdf(heads - 1, tosses, present), strict=True
        )
    )


class _OneWeight(nn.Module):
    """w times the record."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, 1))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs @ self.weight


def _linear(outputs: Tensor, targets: Tensor) -> Tensor:
    return outputs[:, 0]


class _Few(Records):
    """The thirty, and x; if x is absent it is left out of every batch, and the public number stays."""

    def __init__(self, *, present: bool) -> None:
        inputs = torch.ones(_OTHERS + 1, 1)
        inputs[-1] = _AGAINST
        targets = torch.arange(_OTHERS + 1) % 2
        form: Description = Records.from_arrays(inputs, targets, classes=2, name="thirty and one").description
        super().__init__(inputs, targets, form)
        self._present = present

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        return super().batch(indices if self._present else indices[indices < _OTHERS])

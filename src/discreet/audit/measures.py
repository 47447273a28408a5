"""How well scores tell members from others: the curve, its area, what is hit at few false alarms, and how surely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from discreet.errors import UserError

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]

FALSE_ALARMS = (0.001, 0.01)
_REPEATS = 300
_INTERVAL = (2.5, 97.5)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure with its 95 % bootstrap interval over records; the trained models are taken as they are."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Measures:
    """What an attack reaches on one model.

    Attributes:
        auc: the probability that a member scores above another record; 0.5 is guessing.
        hits_at_thousandth: the share of members pointed out with false alarms for at most 0.1 % of the others.
        hits_at_hundredth: the same at 1 %.
        balanced_accuracy: the mean of both shares of right answers, at a threshold chosen on the other records.
        members: how many records were members.
        others: how many were not.
    """

    auc: Estimate
    hits_at_thousandth: Estimate
    hits_at_hundredth: Estimate
    balanced_accuracy: Estimate
    members: int
    others: int


def measured(scores: Floats, member: Truths, *, seed: int) -> Measures:
    """All measures of an attack's scores, higher for members.

    Args:
        scores: one for each record.
        member: which records the model was trained on.
        seed: of the bootstrap.
    """
    if not member.any() or member.all():
        raise UserError("an attack is measured on members and others; there is only one kind")
    if np.isnan(scores).any():
        raise UserError("an attack gave a score that is not a number")
    draw = np.random.default_rng(seed)
    inside, outside = np.flatnonzero(member), np.flatnonzero(~member)
    samples = [
        np.concatenate([draw.choice(inside, len(inside)), draw.choice(outside, len(outside))])
        for _ in range(_REPEATS)
    ]

    def estimate(figure: Callable[[Floats, Truths], float]) -> Estimate:
        found = [figure(scores[sample], member[sample]) for sample in samples]
        low, high = np.percentile(found, _INTERVAL)
        return Estimate(value=figure(scores, member), low=float(low), high=float(high))

    # Which half a record is in has nothing to do with its score, and stays the same in every sample.
    first = draw.random(len(scores)) < 0.5
    answers = _answers(scores, member, first)
    hit = [
        estimate(lambda some, truth, share=share: hits(some, truth, share))  # type: ignore[misc]
        for share in FALSE_ALARMS
    ]
    right = [_balanced(answers[sample], member[sample]) for sample in samples]
    low, high = np.percentile(right, _INTERVAL)
    return Measures(
        auc=estimate(area),
        hits_at_thousandth=hit[0],
        hits_at_hundredth=hit[1],
        balanced_accuracy=Estimate(value=_balanced(answers, member), low=float(low), high=float(high)),
        members=len(inside),
        others=len(outside),
    )


def area(scores: Floats, member: Truths) -> float:
    """The area under the curve; ties count half."""
    ranks = rankdata(scores)
    count = int(member.sum())
    excess = float(ranks[member].sum()) - count * (count + 1) / 2.0
    return excess / (count * (len(scores) - count))


def hits(scores: Floats, member: Truths, false_alarms: float) -> float:
    """The largest share of members above a threshold that at most so many of the others exceed."""
    outside = np.sort(scores[~member])[::-1]
    threshold = outside[min(len(outside) - 1, int(false_alarms * len(outside)))]
    return float((scores[member] > threshold).mean())


def curve(scores: Floats, member: Truths) -> tuple[Floats, Floats]:
    """False alarms and hits at every threshold, from the strictest on."""
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0.0, True)
    inside, outside = np.cumsum(member[order])[last], np.cumsum(~member[order])[last]
    return outside / max(1, outside[-1]), inside / max(1, inside[-1])


def _answers(scores: Floats, member: Truths, first: Truths) -> Truths:
    """Each half is answered by the threshold that is best on the other one."""
    answers = np.zeros(len(scores), dtype=bool)
    for mine in (first, ~first):
        answers[mine] = scores[mine] >= _best_threshold(scores[~mine], member[~mine])
    return answers


def _best_threshold(scores: Floats, member: Truths) -> float:
    if not member.any() or member.all():
        return float(np.median(scores)) if len(scores) else 0.0
    order = np.argsort(-scores, kind="stable")
    gain = np.cumsum(np.where(member[order], 1.0 / member.sum(), -1.0 / (~member).sum()))
    return float(scores[order][int(np.argmax(gain))])


def _balanced(answers: Truths, member: Truths) -> float:
    return float((answers[member].mean() + (~answers[~member]).mean()) / 2.0)

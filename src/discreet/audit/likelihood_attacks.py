"""Attacks that compare a model with shadow models: LiRA and RMIA.

Both take the models' outputs for every record, and who was a member of which model. The shadow models were trained as
the target was, on random halves of the same records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from discreet.errors import UserError

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]
Labels = NDArray[np.int64]

_ENOUGH_FOR_A_VARIANCE = 64
_SMALLEST_DEVIATION = 1e-6
OFFLINE_SHARE = 0.3
"""a, of RMIA's offline correction p(x) = ((1 + a) mean over models without x + (1 - a)) / 2."""


def log_odds(logits: Floats, labels: Labels) -> Floats:
    """Log p(label) - log(1 - p(label)) for each record, exact also where one of the two rounds to 1.

    Args:
        logits: outputs, [..., records, classes].
        labels: the records' labels.
    """
    each = np.asarray(logits, dtype=np.float64)
    index = np.broadcast_to(labels[:, None], (*each.shape[:-1], 1))
    own = np.take_along_axis(each, index, axis=-1)[..., 0]
    others = each.copy()
    np.put_along_axis(others, index, -np.inf, axis=-1)
    top = others.max(axis=-1)
    return np.asarray(own - top - np.log(np.exp(others - top[..., None]).sum(axis=-1)))


def label_probabilities(logits: Floats, labels: Labels) -> Floats:
    """The probability that the model gives to each record's label."""
    each = log_softmax(np.asarray(logits, dtype=np.float64), axis=-1)
    index = np.broadcast_to(labels[:, None], (*each.shape[:-1], 1))
    return np.asarray(np.exp(np.take_along_axis(each, index, axis=-1)[..., 0]))


def lira(target: Floats, shadows: Floats, member: Truths, *, online: bool) -> Floats:
    """LiRA (Carlini et al. 2022): how likely the target's log-odds are for a member, against for another record.

    The log-odds of a record are taken as normal, with a mean of its own under the shadow models that had it and under
    those that did not. With fewer than 64 of either the deviations are pooled over all records, each kind by itself.

    Args:
        target: the target's log-odds, [records].
        shadows: those of the shadow models, [models, records].
        member: which record each shadow model was trained on, [models, records].
        online: compare with models that had the record; otherwise only ask how strange the target is among models that
            did not.
    """
    _require_both(member, online=online)
    out_mean, out_deviation = _normal(shadows, ~member)
    if not online:
        return np.asarray((target - out_mean) / out_deviation)
    in_mean, in_deviation = _normal(shadows, member)
    inside = -(((target - in_mean) / in_deviation) ** 2) / 2.0 - np.log(in_deviation)
    outside = -(((target - out_mean) / out_deviation) ** 2) / 2.0 - np.log(out_deviation)
    return np.asarray(inside - outside)


def rmia(target: Floats, shadows: Floats, member: Truths, *, online: bool, gamma: float = 1.0) -> Floats:
    """RMIA (Zarifzadeh, Liu, Shokri 2024): how many other records a record beats in likelihood ratio.

    r(x) is the target's probability of the label over that of models in general; the score is the share of all other
    records z with r(x) > gamma r(z).

    Args:
        target: the target's probabilities of the labels, [records].
        shadows: those of the shadow models, [models, records].
        member: which record each shadow model was trained on.
        online: take the mean over models with and without the record; otherwise correct the one without.
        gamma: by how much a record has to be ahead.
    """
    _require_both(member, online=online)
    without = _mean(shadows, ~member)
    if online:
        general = (without + _mean(shadows, member)) / 2.0
    else:
        general = ((1.0 + OFFLINE_SHARE) * without + (1.0 - OFFLINE_SHARE)) / 2.0
    ratio = target / np.maximum(general, 1e-300)
    ordered = np.sort(ratio)
    # A record never beats itself, as gamma is at least 1.
    return np.asarray(np.searchsorted(ordered, ratio / gamma, side="left") / max(1, len(ratio) - 1))


def _normal(shadows: Floats, chosen: Truths) -> tuple[Floats, Floats]:
    count = chosen.sum(axis=0)
    mean = _mean(shadows, chosen)
    squares = np.where(chosen, (shadows - mean) ** 2, 0.0)
    if count.min() >= _ENOUGH_FOR_A_VARIANCE:
        variance = squares.sum(axis=0) / np.maximum(1, count - 1)
    else:
        spare = np.maximum(0, count - 1).sum()
        if not spare:
            raise UserError("there are too few shadow models to see how their outputs vary; take at least 4")
        variance = np.full(shadows.shape[1], squares[:, count > 1].sum() / spare)
    return mean, np.maximum(np.sqrt(variance), _SMALLEST_DEVIATION)


def _mean(shadows: Floats, chosen: Truths) -> Floats:
    """The mean over the chosen models; over all of them for a record that none was chosen for."""
    count = chosen.sum(axis=0)
    some = np.where(chosen, shadows, 0.0).sum(axis=0) / np.maximum(1, count)
    return np.asarray(np.where(count > 0, some, shadows.mean(axis=0)))


def _require_both(member: Truths, *, online: bool) -> None:
    if len(member) < 2 or member.all() or (online and not member.any()):
        raise UserError(f"there are {len(member)} shadow models; an attack by shadows needs at least 2")

"""Membership attacks on models trained for the purpose, and what they reach next to what is certified."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from discreet.audit.bounds import guess, one_run_epsilon
from discreet.audit.learned_attacks import balanced, black_box_features, learned_scores, white_box_features
from discreet.audit.likelihood_attacks import label_probabilities, lira, log_odds, rmia
from discreet.audit.measures import Measures, curve, measured
from discreet.audit.outputs import Outputs
from discreet.audit.promise import certified_epsilon
from discreet.audit.shadows import Done, Shadows, Subject
from discreet.errors import UserError

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]
Attack = Literal["black-box", "white-box", "lira", "rmia"]

ATTACKS: tuple[Attack, ...] = get_args(Attack)
_KNOWN_SHARE = 0.5
_MOST_POINTS = 400


@dataclass(frozen=True, kw_only=True, eq=False)
class Reached:
    """What one attack reaches on the target.

    Attributes:
        name: the attack.
        measures: its figures.
        proven: a lower bound on epsilon, where membership was decided by coins; it holds with `confidence`.
        alarms: the curve's false alarms.
        hits: the hits at those.
    """

    name: str
    measures: Measures
    proven: float | None
    alarms: tuple[float, ...]
    hits: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class AttackReport:
    """An attack's result.

    Attributes:
        subject: what was attacked.
        shadows: how many models the adversary had.
        reached: what each variant of the attack reached.
        accuracy: the target's, on its members and on others.
        certified: the certified epsilon; None for the control, which has none.
        delta: where epsilons hold.
        confidence: of what is proven.
    """

    subject: Subject
    shadows: int
    reached: tuple[Reached, ...]
    accuracy: tuple[float, float]
    certified: float | None
    delta: float
    confidence: float

    def to_json(self) -> dict[str, Any]:
        """Plain values, without the points of the curves."""
        return {
            "subject": self.subject.to_json(),
            "shadows": self.shadows,
            "accuracy": {"members": self.accuracy[0], "others": self.accuracy[1]},
            "certified_epsilon": self.certified,
            "delta": self.delta,
            "confidence": self.confidence,
            "attacks": [
                {"name": each.name, "proven_epsilon": each.proven, **asdict(each.measures)}
                for each in self.reached
            ],
        }

    def table(self) -> str:
        """The figures in plain text."""
        kind = (
            "trained without privacy" if self.certified is None else f"certified epsilon {self.certified:.4g}"
        )
        lines = [
            f"target: {kind}, accuracy {self.accuracy[0]:.1%} on members, {self.accuracy[1]:.1%} on others",
            f"{'attack':<14}{'AUC':<21}{'TPR at FPR 0.1%':<19}{'at 1%':<19}{'balanced':<11}epsilon proven",
        ]
        for each in self.reached:
            found = each.measures
            interval = f"{found.auc.value:.3f} [{found.auc.low:.3f}, {found.auc.high:.3f}]"
            few, more = (
                f"{one.value:.2%} [{one.low:.1%}, {one.high:.1%}]"
                for one in (found.hits_at_thousandth, found.hits_at_hundredth)
            )
            proven = "-" if each.proven is None else f"{each.proven:.3f}"
            lines.append(
                f"{each.name:<14}{interval:<21}{few:<19} {more:<19} {found.balanced_accuracy.value:<10.3f}{proven}"
            )
        return "\n".join(lines)


def attack(
    name: Attack,
    subject: Subject,
    *,
    folder: Path,
    shadows: int = 16,
    confidence: float = 0.95,
    processes: int | None = None,
    done: Done | None = None,
) -> AttackReport:
    """Train what an attack needs, or find it in the folder, and attack the target.

    Args:
        name: which attack.
        subject: what is attacked; its split has to be the attack's (`split_for`).
        folder: where the models are kept.
        shadows: how many models the adversary trains; the attacks that learn take one, or none.
        confidence: of the lower bound on epsilon.
        processes: how many models are trained at a time.
        done: told of each model.
    """
    if name not in ATTACKS:
        raise UserError(f"attack is {name!r}; it can be {', '.join(ATTACKS)}")
    if subject.split != split_for(name):
        raise UserError(f'{name} needs models that were trained on "{split_for(name)}"')
    count = shadows + 1 if name in ("lira", "rmia") else 2
    models = Shadows(subject, folder, count)
    models.train(processes=processes, done=done)
    outputs = models.outputs()
    plan_costs = _certified(subject, outputs[0])
    found = _compared(name, outputs) if name in ("lira", "rmia") else _learned(name, subject, outputs)
    delta, coins = subject.job.delta, subject.split == "halves"
    return AttackReport(
        subject=subject,
        shadows=count - 1 if name != "white-box" else 0,
        reached=tuple(
            _reached(variant, scores, member, subject, confidence if coins else None, delta)
            for variant, scores, member in found
        ),
        accuracy=outputs[0].accuracy,
        certified=plan_costs,
        delta=delta,
        confidence=confidence,
    )


def split_for(name: Attack) -> Literal["halves", "sixths"]:
    """How records are dealt out for an attack."""
    return "halves" if name in ("lira", "rmia") else "sixths"


def _compared(name: Attack, outputs: list[Outputs]) -> list[tuple[str, Floats, Truths]]:
    target, others = outputs[0], outputs[1:]
    labels, member = target.labels.numpy(), np.stack([each.member.numpy() for each in others])
    signal = log_odds if name == "lira" else label_probabilities
    own = signal(target.logits.numpy().astype(np.float64), labels)
    theirs = np.stack([signal(each.logits.numpy().astype(np.float64), labels) for each in others])
    method = lira if name == "lira" else rmia
    truth = target.member.numpy()
    return [
        (f"{name} {kind}", method(own, theirs, member, online=kind == "online"), truth)
        for kind in ("online", "offline")
    ]


def _learned(name: Attack, subject: Subject, outputs: list[Outputs]) -> list[tuple[str, Floats, Truths]]:
    target = outputs[0]
    draw = np.random.default_rng(subject.number_for("audit attack", 0))
    member, records = target.member.numpy(), len(target.labels)
    places = balanced(member, np.flatnonzero(subject.asked(0, records).numpy()), draw)
    if name == "black-box":
        shadow = outputs[1]
        theirs = balanced(shadow.member.numpy(), np.flatnonzero(subject.asked(1, records).numpy()), draw)
        learn, truth = _rows(black_box_features(shadow), theirs), shadow.member.numpy()[theirs]
        asked = places
        features = black_box_features(target)
    else:
        cut = int(len(places) * _KNOWN_SHARE)
        features = white_box_features(target)
        learn, truth, asked = _rows(features, places[:cut]), member[places[:cut]], places[cut:]
    seed = subject.number_for("audit attack", 1)
    scores = learned_scores(learn, torch.from_numpy(truth), _rows(features, asked), seed=seed)
    return [(name, scores, member[asked])]


def _rows(features: list[torch.Tensor], places: NDArray[np.int64]) -> list[torch.Tensor]:
    rows = torch.from_numpy(places)
    return [each[rows] for each in features]


def _reached(
    name: str, scores: Floats, member: Truths, subject: Subject, confidence: float | None, delta: float
) -> Reached:
    alarms, hits = curve(scores, member)
    kept = np.unique(np.geomspace(1, len(alarms), min(_MOST_POINTS, len(alarms))).astype(int) - 1)
    return Reached(
        name=name,
        measures=measured(scores, member, seed=subject.number_for("audit measure", 0)),
        proven=None if confidence is None else _proven(scores, member, delta, confidence),
        alarms=tuple(alarms[kept].tolist()),
        hits=tuple(hits[kept].tolist()),
    )


def _proven(scores: Floats, member: Truths, delta: float, confidence: float) -> float:
    """Every record was in by a coin, so the records are canaries; how many are guessed depends on their number only."""
    return one_run_epsilon(guess(scores, member), delta=delta, confidence=confidence)


def _certified(subject: Subject, target: Outputs) -> float | None:
    """What the target's certificate says, from the plan that it was trained by."""
    if not subject.private:
        return None
    return certified_epsilon(subject.plan(len(target.labels), int(target.member.sum())))

"""The game of the canaries: thousands of them, each in or out by a coin, in one run through the real training loop."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from discreet.accounting import Accounting, Budget, epsilon, profile
from discreet.accounting.rounding import rounded_up
from discreet.accounting.tradeoff import lines
from discreet.audit.bounds import (
    both_ways,
    guess,
    largest,
    one_run_epsilon,
    proportion,
    refutes,
    require_confidence,
)
from discreet.audit.canaries import CanaryRecords, Disguise, WithCanaries, made_up_network, made_up_records
from discreet.audit.promise import Charges, certified_epsilon, noisier, promised
from discreet.audit.tally import Tally
from discreet.audit.watching import WEIGHTS, evidence, watched
from discreet.errors import UserError
from discreet.noise.key import RunKey
from discreet.training.fit import cross_entropy, resume, start

if TYPE_CHECKING:
    from discreet.plan import Plan
    from discreet.recipes import FirstOrder
    from discreet.training.run import Run

Progress = Callable[[int, int], None]

_MOST_NOISE = 64.0
_LEAST_NOISE = 0.125


@dataclass(frozen=True, kw_only=True)
class CanaryGame:
    """An audit by canaries, as it is set up before anything is run.

    The recipe's batch sizes are means for all records of the game, canaries included; `sampled_as` turns those of
    another data set into them.

    Args:
        recipe: the method to audit.
        budget: what it is certified for; the bounds are for the same delta.
        accounting: what the adversary sees.
        canaries: how many records are put in or left out by a coin.
        records: how many ordinary records keep them company.
        confidence: of each bound by itself.
        seed: the audit's key; the same one gives the same audit.
    """

    recipe: FirstOrder
    budget: Budget
    accounting: Accounting = Accounting.VISIBLE
    canaries: int = 30_000
    records: int = 1_000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.canaries < 20 or self.records < 2:
            raise UserError(
                f"canaries is {self.canaries} and records {self.records}; an audit has at least 20 canaries and 2 "
                "records"
            )
        require_confidence(self.confidence)

    @property
    def examples(self) -> int:
        """The public number of records."""
        return self.records + self.canaries

    def plan(self) -> Plan:
        """The plan that is audited."""
        return self.recipe.plan(self.examples, self.budget, accounting=self.accounting)


@dataclass(frozen=True, kw_only=True)
class CanaryAudit:
    """What the canaries proved. Every bound holds with `confidence`, by itself.

    Attributes:
        recipe: what was audited.
        accounting: what the adversary was taken to see.
        delta: where all epsilons hold.
        certified: what the run's certificate says: an upper bound.
        claimed: what the method's paper would print for this run; no guarantee.
        releases: how many releases were made; trials, where these are charged.
        updates: how many of them moved the weights and could be looked at.
        canaries: how many records were in or out.
        guessed: how many were guessed.
        right: how many guesses were right.
        confidence: of each bound by itself.
        one_run: a lower bound that assumes nothing of the mechanism (Steinke, Nasr, Jagielski 2023).
        by_curve: a lower bound if the mechanism is the certified one with more or less noise (Mahloujifar, Melis,
            Chaudhuri 2024).
        pooled: the same from error rates over all canaries, which in a run without a gate are independent of each
            other (after Nasr et al. 2023); None where they are not.
        refuted: whether the certified curve itself is refuted: then the implementation does not keep its promise.
        seed: the audit's key.
    """

    recipe: str
    accounting: str
    delta: float
    certified: float
    claimed: float | None
    releases: int
    updates: int
    canaries: int
    guessed: int
    right: int
    confidence: float
    one_run: float
    by_curve: float
    pooled: float | None
    refuted: bool
    seed: int

    @property
    def best(self) -> float:
        """The largest of the lower bounds. Each holds with `confidence`; that all of them do is less sure."""
        return max(self.one_run, self.by_curve, self.pooled or 0.0)

    @property
    def joint_confidence(self) -> float:
        """How sure it is that the largest of the bounds holds: that all of them do."""
        return 1.0 - (2 if self.pooled is None else 3) * (1.0 - self.confidence)

    def sentence(self) -> str:
        """The result in a sentence or two."""
        proven = (
            f"{self.recipe}: the best lower bound is epsilon {self.best:.3f} (each bound holds with confidence "
            f"{self.confidence:.1%}, all of them with {self.joint_confidence:.1%}); certified is "
            f"{rounded_up(self.certified)} at delta {self.delta:g}."
        )
        if self.refuted:
            return f"{proven} The certified bound is REFUTED: the run gave away more than it promised."
        return f"{proven} That is {self.best / self.certified:.0%} of it, and refutes nothing."

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def play(game: CanaryGame, *, folder: Path | None = None, progress: Progress | None = None) -> CanaryAudit:
    """Make the run, look at every release as an adversary would, guess, and bound epsilon from below.

    Args:
        game: the audit.
        folder: where the run lies while it lasts: stopped, the same call goes on from the last checkpoint, or begins
            again where the run had ended already. Without one it lives in memory.
        progress: told after each release how many are made, and of how many.
    """
    plan, tally = game.plan(), Tally(folder)
    key = RunKey.from_seed(game.seed)
    present = (key.stream("canary coins", 0).words(game.canaries) & 1).bool()
    with warnings.catch_warnings():
        # With so many records that are nobody's, delta may well be above 1/n.
        warnings.filterwarnings("ignore", message="delta .* is not below")
        run = _begin(game, watched(plan), present, tally)
        if run.state.releases and tally.found(run.state.releases) is None:
            # Stopped when the run had just ended: what was seen last was not written down.
            run.let_go()
            tally.clear()
            run = _begin(game, watched(plan), present, tally)
    try:
        scores = _scores(run, tally, progress)
    finally:
        run.let_go()
    charges = plan.charges() if not plan.adapts else run.filter.history.charges()
    found = _judged(game, plan, run, charges, scores, present)
    tally.clear()
    return found


def sampled_as(recipe: FirstOrder, *, of: int, to: int) -> FirstOrder:
    """The recipe with batches that are the same shares of `to` records as its own are of `of`."""
    changes = {
        name: max(1, round(getattr(recipe, name) * to / of))
        for name in ("expected_batch_size", "gate_batch_size", "progress_batch_size")
        if hasattr(recipe, name)
    }
    return replace(recipe, **changes)


def _begin(game: CanaryGame, plan: Plan, present: Tensor, tally: Tally) -> Run:
    records = made_up_records(game.records, game.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(game.seed)
        model = WithCanaries(made_up_network(), game.canaries)
    loss = Disguise(classes=records.description.classes).loss(cross_entropy)
    data: Any = CanaryRecords(records, present)
    public = _Public(records)
    if tally.folder is not None and tally.begun:
        return resume(tally.folder, model, data, plan, loss=loss, public=public, checkpoint_seconds=math.inf)
    return start(
        model,
        data,
        plan,
        loss=loss,
        public=public,
        folder=tally.folder,
        seed=game.seed,
        checkpoint_seconds=math.inf,
    )


class _Public:
    """The ordinary records again, in the form of the game's inputs: they are made up, so they may be looked at."""

    def __init__(self, records: Any) -> None:
        self._records = CanaryRecords(records, torch.zeros(0, dtype=torch.bool))

    def batches(self, size: int) -> Any:
        for begin in range(0, len(self._records), size):
            yield self._records.batch(torch.arange(begin, min(begin + size, len(self._records))))


def _scores(run: Run, tally: Tally, progress: Progress | None) -> Tensor:
    """For each canary the log of how much likelier the updates are if it was in."""
    canaries = run.layout.shapes[run.layout.names.index(WEIGHTS)][0] - 1
    total = tally.found(run.state.releases)
    if total is None:
        total = torch.zeros(canaries, dtype=torch.float64)
        tally.save(run, total, now=True)
    for release in run:
        if release.updated:
            total += evidence(run, release)
        if not run.finished:
            tally.save(run, total)
        if progress is not None:
            progress(release.number, release.of)
    return total


def _judged(
    game: CanaryGame, plan: Plan, run: Run, charges: Charges, scores: Tensor, present: Tensor
) -> CanaryAudit:
    delta, confidence = game.budget.delta, game.confidence
    guesses = guess(scores.numpy(), present.numpy())
    pooled = plan.selecting is None
    # Two tests say whether the certificate is refuted; together they are wrong no more often than one.
    shared = 1.0 - (1.0 - confidence) / (2.0 if pooled else 1.0)

    def by_guesses(factor: float) -> bool:
        return refutes(_weaker(factor), guesses, confidence=confidence)

    def by_rates(factor: float, confidence: float = confidence) -> bool:
        false_alarms, hits = _error_rates(scores, present, confidence)
        with_record, without = lines(_weaker(factor))
        return bool(
            hits > with_record.most(_array(false_alarms))[0]
            or 1.0 - false_alarms > without.most(_array(1.0 - hits))[0]
        )

    def _weaker(factor: float) -> Any:
        return profile(noisier(charges, factor), accounting=plan.accounting, calculus=plan.calculus)

    def lower_bound(refuted: Callable[[float], bool]) -> float:
        return _least_epsilon(refuted, charges, plan)

    return CanaryAudit(
        recipe=plan.recipe,
        accounting=str(plan.accounting),
        delta=delta,
        certified=certified_epsilon(plan),
        claimed=run.claimed_epsilon(),
        releases=run.state.releases,
        updates=run.state.updates,
        canaries=guesses.canaries,
        guessed=guesses.made,
        right=guesses.right,
        confidence=confidence,
        one_run=one_run_epsilon(guesses, delta=delta, confidence=confidence),
        by_curve=lower_bound(by_guesses),
        pooled=lower_bound(by_rates) if pooled else None,
        refuted=refutes(both_ways(promised(plan)), guesses, confidence=shared)
        or (pooled and by_rates(1.0, shared)),
        seed=game.seed,
    )


def _array(value: float) -> Any:
    import numpy as np

    return np.array([value])


def _error_rates(scores: Tensor, present: Tensor, confidence: float) -> tuple[float, float]:
    """An upper bound on false alarms and a lower one on hits that hold together, for the test "likelier in"."""
    each = 1.0 - (1.0 - confidence) / 2.0
    said = scores > 0.0
    inside, outside = int(present.sum()), int((~present).sum())
    alarms = proportion(int((said & ~present).sum()), outside, each)[1]
    hits = proportion(int((said & present).sum()), inside, each)[0]
    return alarms, hits


def _least_epsilon(refuted: Callable[[float], bool], charges: Charges, plan: Plan) -> float:
    """The largest epsilon of the family that is refuted. More noise is refuted by whatever refutes less."""

    def at(log_less: float) -> bool:
        return refuted(math.exp(-log_less))

    least, most = -math.log(_MOST_NOISE), -math.log(_LEAST_NOISE)
    if not at(least):
        return 0.0
    found = largest(at, 0.0, most) if at(0.0) else largest(at, least, 0.0)
    return epsilon(
        noisier(charges, math.exp(-found)),
        plan.budget.delta,
        accounting=plan.accounting,
        calculus=plan.calculus,
    )

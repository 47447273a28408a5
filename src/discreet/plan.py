"""The plan: everything that bears on the guarantee, in one frozen object, fixed before the first record is read."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from discreet import schedules
from discreet.accounting import (
    Accounting,
    Budget,
    Event,
    PoissonGaussian,
    calibrate_noise,
    calibrate_releases,
    epsilon,
)
from discreet.accounting.history import Calculus, ChargePlan, LogHeader
from discreet.accounting.rdp import ORDERS, certified_rdp
from discreet.accounting.selective.claimed import WHOLE_ORDERS, claimed_epsilon
from discreet.accounting.selective.memory import memory_multiplier
from discreet.accounting.termination import SHARE_OF_DELTA, Termination, trial_cap
from discreet.errors import UserError
from discreet.gates.gate import Candidate
from discreet.gates.selecting import Selecting
from discreet.noise.gaussian import GaussianNoise
from discreet.optimizers import OptimizerChoice
from discreet.sampling import PoissonSampler
from discreet.schedules import UNMOVED, Constant, Phase, Schedule

if TYPE_CHECKING:
    from discreet.gradients.clipping import ClippingRule
    from discreet.memory import Memory

Charges = list[tuple[Event, int]]

MOST_RELEASES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Clipping:
    """Which clipping rule holds at a release: `rule`, its norm moved by `schedule`."""

    rule: ClippingRule
    schedule: Schedule = Constant()

    def at(self, release: int, releases: int) -> ClippingRule:
        """The rule in force at one release; it states its own sensitivity."""
        factor = self.schedule.at(release, releases)
        if factor == 1.0:
            return self.rule
        rule: ClippingRule = replace(cast(Any, self.rule), clip_norm=self.rule.sensitivity * factor)
        assert math.isclose(rule.sensitivity, self.rule.sensitivity * factor), (
            "a rule's clip norm is its sensitivity"
        )
        return rule


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A run as it will be carried out.

    Guarantee: neighbours differ by one record, added or removed. Release n clips each sampled record to the
    sensitivity S that `clipping` states, adds Gaussian noise of standard deviation S times `noise.multiplier_at(n)`
    and divides by the public `sampler.expected_batch_size`; `event(n)` is computed from those same objects. What the
    optimizer, the average and the schedules do afterwards is post-processing.

    A plan with `selecting` makes candidates that way and releases only some. What is charged, and counted as a
    release here, is what the adversary is taken to see: each trial with its outcome (`visible`), or each update of
    the weights (`hidden`). Its events are those that the gate states.

    A plan with `memory` multiplies the clipped sum by the memory's `sum_weight` before the noise is added, and blends
    the noisy release with earlier ones, which is post-processing (Theorem memory). So `event(n)` is that of plain
    DP-SGD at the noise over the weighted sensitivity, `plain_multiplier_at(n)`.

    Attributes:
        releases: how many releases; with a phased decay the most that there can be, as the filter may end the run.
        claimed_budget: where to end by the paper's formula, which counts updates only; no guarantee of anything.
        order: the order of the Renyi filter that a phased decay is held by.
        termination: the cap on consecutive trials, under `hidden`.
    """

    recipe: str
    settings: dict[str, Any]
    budget: Budget
    accounting: Accounting
    sampler: PoissonSampler
    clipping: Clipping
    noise: GaussianNoise
    optimizer: OptimizerChoice
    learning_rate: float
    learning_rate_schedule: Schedule = Constant()
    average: float | None = None
    releases: int
    selecting: Selecting | None = None
    memory: Memory | None = None
    claimed_budget: float | None = None
    order: float | None = None
    termination: Termination | None = None

    def __post_init__(self) -> None:
        if self.memory is not None and self.selecting is not None:
            raise ValueError(
                "memory and selecting are both given; a memory that rejected candidates pass through is not known to "
                "be private: leave one of them out"
            )

    @property
    def sum_weight(self) -> float:
        """What the clipped sum is multiplied by before the noise is added; public."""
        return 1.0 if self.memory is None else self.memory.sum_weight

    def plain_multiplier_at(self, release: int) -> float:
        """The noise multiplier at which plain DP-SGD is exactly as private as this release: noise over sensitivity.

        With a memory it is sigma / beta. A fair comparison gives DP-SGD this one.
        """
        return memory_multiplier(self.noise.multiplier_at(release), self.sum_weight)

    @property
    def adapts(self) -> bool:
        """Whether events depend on what was released."""
        return self.selecting is not None and self.selecting.decay is not None

    @property
    def hides_trials(self) -> bool:
        """Whether number and timing of trials are secret."""
        return self.selecting is not None and self.accounting is Accounting.HIDDEN

    @property
    def unit(self) -> str:
        """What one release is called where people read it."""
        return "trial" if self.selecting is not None and not self.hides_trials else "release"

    def event(self, release: int, phase: Phase | None = None) -> Event:
        """The privacy event of one release; of a typical one where it depends on a phase that is not given."""
        if self.selecting is None:
            return PoissonGaussian(
                sample_rate=self.sampler.rate, noise_multiplier=self.plain_multiplier_at(release)
            )
        return self.selecting.event(self.candidate(release, phase), self.accounting)

    def candidate(self, release: int, phase: Phase | None = None) -> Candidate:
        """The mechanism that makes the candidates of one release."""
        if phase is None:
            decay = None if self.selecting is None else self.selecting.decay
            phase = UNMOVED if decay is None else decay.typical
        return Candidate(
            sample_rate=self.sampler.rate,
            noise_multiplier=self.noise.multiplier_at(release) * phase.noise,
            number=release,
            phase=phase,
        )

    def charges(self, releases: int | None = None) -> Charges:
        """The events of the first `releases` releases (of all, when not given), runs of equal ones compressed."""
        return compress(self.event(n) for n in range(self.releases if releases is None else releases))

    @property
    def calculus(self) -> Calculus:
        """How charges are composed."""
        return "rdp" if self.adapts else "best"

    def header(self, *, secure_noise: bool) -> LogHeader:
        """What the event log begins with: the promise that the privacy filter holds the run to."""
        return LogHeader(
            budget=self.budget,
            accounting=self.accounting,
            secure_noise=secure_noise,
            calculus=self.calculus,
            filter="renyi-order" if self.adapts else "planned",
            order=self.order,
            plan=None if self.adapts else ChargePlan(releases=tuple(self.charges())),
            termination=self.termination,
        )

    def epsilon(self, releases: int | None = None) -> float:
        """The certified epsilon at the budget's delta after that many releases; an estimate where the plan adapts."""

        def uncapped(delta: float) -> float:
            charges = self.charges(releases)
            return epsilon(charges, delta, accounting=self.accounting, calculus=self.calculus)

        delta = self.budget.delta
        return uncapped(delta) if self.termination is None else self.termination.epsilon(uncapped, delta)

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values: enough to see what will be done, and to tell one plan from another."""
        return {
            "recipe": self.recipe,
            "settings": self.settings,
            "budget": asdict(self.budget),
            "accounting": str(self.accounting),
            "sampler": {"kind": "poisson", "examples": self.sampler.examples, "rate": self.sampler.rate},
            "clipping": {
                "rule": type(self.clipping.rule).__name__,
                "sensitivity": self.clipping.rule.sensitivity,
            },
            "noise": {"kind": "gaussian", "multiplier": self.noise.multiplier},
            "optimizer": {"name": self.optimizer.name, "settings": dict(self.optimizer.settings)},
            "learning_rate": self.learning_rate,
            "schedules": {
                "learning_rate": schedules.to_json(self.learning_rate_schedule),
                "noise": schedules.to_json(self.noise.schedule),
                "clip_norm": schedules.to_json(self.clipping.schedule),
            },
            "average": self.average,
            "releases": self.releases,
            "selecting": None if self.selecting is None else self.selecting.to_json(),
            "memory": None if self.memory is None else self.memory.to_json(),
            "claimed_budget": self.claimed_budget,
            "order": self.order,
            "termination": None if self.termination is None else self.termination.to_json(),
        }

    def digest(self) -> str:
        """A short name for exactly this plan."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def costs(self) -> dict[str, float | None]:
        """Epsilon by each accounting. Only `visible` and `hidden` are guarantees.

        Where candidates are selected, only the accounting that the run is held to says something about this run.
        """
        if self.selecting is None:
            charges, delta = self.charges(), self.budget.delta
            certified = {name: epsilon(charges, delta, accounting=name) for name in ("visible", "hidden")}
            return {**certified, "claimed": self.claimed()}
        held = self.budget.epsilon if self.adapts else self.epsilon()
        return {"visible": None, "hidden": None, str(self.accounting): held, "claimed": self.claimed()}

    def claimed(self) -> float | None:
        """What the method's paper would print, before the run. Not a guarantee.

        None where no paper has a formula, and where the formula counts accepted updates: a run knows those.
        """
        if self.selecting is not None:
            return None
        return epsilon(self.charges(), self.budget.delta, calculus="rdp")

    def marginal_epsilon(self, releases: int, groups: int) -> float:
        """What one of so many equally clipped layer groups would cost if it were all that is released.

        Not a guarantee of anything: every release gives away all groups at once. Papers draw curves of it.
        """
        charges = [
            (replace(event, noise_multiplier=event.noise_multiplier * math.sqrt(groups)), count)
            for event, count in self.charges(releases)
            if isinstance(event, PoissonGaussian)
        ]
        return epsilon(charges, self.budget.delta, calculus="rdp")

    def claimed_range(self) -> tuple[float, float] | None:
        """Between what the method's paper would print if candidates passed least, and most often. Not a guarantee.

        None where the paper has no formula, or parameters decay.
        """
        if self.selecting is None or not self.selecting.claims or self.adapts:
            return None
        event, gate = self.selecting.claimed_event(self.candidate(0)), self.event(0)
        size = 1 if self.selecting.buffer is None else self.selecting.buffer.size
        rates = (1.0, 1.0) if self.hides_trials else (gate.lowest_acceptance / size, gate.highest_acceptance)
        low, high = (
            claimed_epsilon([(event, round(self.releases * rate))], self.budget.delta, orders=WHOLE_ORDERS)
            for rate in rates
        )
        most = math.inf if self.claimed_budget is None else self.claimed_budget
        return min(low, most), min(high, most)

    def learning_rate_at(self, release: int) -> float:
        """The learning rate of one release."""
        return self.learning_rate * self.learning_rate_schedule.at(release, self.releases)


def compress(events: Iterator[Event]) -> Charges:
    """Runs of equal events as (event, count)."""
    return [(event, sum(1 for _ in run)) for event, run in groupby(events)]


def fit_to_budget(plan: Plan, *, noise_is_given: bool, releases_are_given: bool) -> Plan:
    """The plan with what was left open calibrated so that its epsilon never exceeds the budget.

    With neither given the releases stand and the noise is calibrated; with the noise given, the releases are; with
    both given the plan is checked. Under `hidden`, the cap on consecutive trials is paid from a part of delta that is
    set aside first.
    """
    budget = plan.budget
    if plan.hides_trials:
        budget = Budget(epsilon=budget.epsilon, delta=budget.delta * (1.0 - SHARE_OF_DELTA))

    def with_noise(multiplier: float) -> Charges:
        return replace(plan, noise=replace(plan.noise, multiplier=multiplier)).charges()

    if not noise_is_given:
        multiplier = calibrate_noise(with_noise, budget, accounting=plan.accounting, calculus=plan.calculus)
        plan = replace(plan, noise=replace(plan.noise, multiplier=multiplier))
    elif not releases_are_given:
        # Where parameters decay, as many as there would be if they never did: the filter ends the run before.
        most = calibrate_releases(
            lambda number: plan.event(number, UNMOVED),
            budget,
            limit=MOST_RELEASES,
            accounting=plan.accounting,
            calculus=plan.calculus,
        )
        plan = replace(plan, releases=most, noise=replace(plan.noise, releases=most))
    if plan.adapts:
        plan = replace(plan, order=_best_order(plan, budget))
    if plan.hides_trials:
        plan = replace(plan, termination=_termination(plan))
    # A plan that adapts is ended by its filter: what it would cost to go on is not its cost.
    spent = 0.0 if plan.adapts else plan.epsilon()
    if spent > plan.budget.epsilon:
        raise UserError(
            f"{plan.releases} {plan.unit}s at noise multiplier {plan.noise.multiplier:g} spend epsilon {spent:.4g}, "
            f"more than the budget of {plan.budget.epsilon:g}; leave one of the three open and it is calibrated"
        )
    return plan


def _best_order(plan: Plan, budget: Budget) -> float:
    """The order at which the run, if it goes as expected, makes most releases: chosen now, from public numbers.

    It is expected that each update takes as many trials as candidates pass half-way between most and least often, and
    that slow decay follows it. However it goes, the filter holds at the order that was chosen.
    """
    assert plan.selecting is not None
    assert plan.selecting.decay is not None
    gate, buffer = plan.event(0), plan.selecting.buffer
    trials = 1.0
    if not plan.hides_trials:
        passing = (gate.lowest_acceptance + gate.highest_acceptance) / 2.0
        trials = (1 if buffer is None else buffer.size) / passing
    with np.errstate(divide="ignore", invalid="ignore"):
        room = budget.epsilon - np.log1p(-1.0 / ORDERS) + np.log(budget.delta * ORDERS) / (ORDERS - 1.0)
        made = np.zeros_like(ORDERS)
        for phase, updates in plan.selecting.decay.slow_path():
            event = plan.event(0, phase)
            cost = sum(certified_rdp(part, ORDERS, plan.accounting) for part in event.parts())
            fit = np.where(np.isfinite(cost) & (room > 0.0), np.minimum(room / cost, updates * trials), 0.0)
            made, room = made + fit, room - np.where(fit > 0.0, fit * cost, np.inf)
    if not made.max() >= 1.0:
        raise UserError(
            f"not even one {plan.unit} keeps epsilon {budget.epsilon:g} at delta {budget.delta:g}; raise the budget, "
            "or add noise"
        )
    return float(ORDERS[int(np.argmax(made))])


def _termination(plan: Plan) -> Termination:
    """The cap on consecutive trials, from the phase in which candidates pass least often."""
    assert plan.selecting is not None
    decay, buffer = plan.selecting.decay, plan.selecting.buffer
    phases = [UNMOVED] if decay is None else list(decay.corners)
    numbers = sorted({0, plan.releases - 1})
    low = min(plan.event(n, phase).lowest_acceptance for n in numbers for phase in phases)
    candidates = plan.releases * (1 if buffer is None else buffer.size)
    cap = trial_cap(
        epsilon=plan.budget.epsilon,
        delta=plan.budget.delta,
        lowest_acceptance=low,
        releases=candidates,
    )
    return Termination(cap=cap, lowest_acceptance=low, candidates=candidates)

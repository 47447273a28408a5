"""The plan: everything that bears on the guarantee, in one frozen object, fixed before the first record is read."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

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
from discreet.accounting.history import ChargePlan, LogHeader
from discreet.errors import UserError
from discreet.noise.gaussian import GaussianNoise
from discreet.optimizers import OptimizerChoice
from discreet.sampling import PoissonSampler
from discreet.schedules import Constant, Schedule

if TYPE_CHECKING:
    from discreet.gradients.clipping import ClippingRule

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

    def event(self, release: int) -> Event:
        """The privacy event of one release."""
        return PoissonGaussian(
            sample_rate=self.sampler.rate, noise_multiplier=self.noise.multiplier_at(release)
        )

    def charges(self, releases: int | None = None) -> Charges:
        """The events of the first `releases` releases (of all, when not given), runs of equal ones compressed."""
        return compress(self.event(n) for n in range(self.releases if releases is None else releases))

    def header(self, *, secure_noise: bool) -> LogHeader:
        """What the event log begins with: the promise that the privacy filter holds the run to."""
        return LogHeader(
            budget=self.budget,
            accounting=self.accounting,
            secure_noise=secure_noise,
            plan=ChargePlan(releases=tuple(self.charges())),
        )

    def epsilon(self, releases: int | None = None) -> float:
        """The certified epsilon at the budget's delta after that many releases."""
        return epsilon(self.charges(releases), self.budget.delta, accounting=self.accounting)

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
        }

    def digest(self) -> str:
        """A short name for exactly this plan."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def costs(self) -> dict[str, float]:
        """Epsilon by each accounting. Only `visible` and `hidden` are guarantees."""
        charges, delta = self.charges(), self.budget.delta
        certified = {name: epsilon(charges, delta, accounting=name) for name in ("visible", "hidden")}
        return {**certified, "claimed": self.claimed()}

    def claimed(self) -> float:
        """What the method's papers would print: for a plain noisy sum, its Renyi figure. Not a guarantee."""
        return epsilon(self.charges(), self.budget.delta, calculus="rdp")

    def learning_rate_at(self, release: int) -> float:
        """The learning rate of one release."""
        return self.learning_rate * self.learning_rate_schedule.at(release, self.releases)


def compress(events: Iterator[Event]) -> Charges:
    """Runs of equal events as (event, count)."""
    return [(event, sum(1 for _ in run)) for event, run in groupby(events)]


def fit_to_budget(plan: Plan, *, noise_is_given: bool, releases_are_given: bool) -> Plan:
    """The plan with what was left open calibrated so that its epsilon never exceeds the budget.

    With neither given the releases stand and the noise is calibrated; with the noise given, the releases are; with
    both given the plan is checked.
    """

    def with_noise(multiplier: float) -> Charges:
        return replace(plan, noise=replace(plan.noise, multiplier=multiplier)).charges()

    if not noise_is_given:
        multiplier = calibrate_noise(with_noise, plan.budget, accounting=plan.accounting)
        return replace(plan, noise=replace(plan.noise, multiplier=multiplier))
    if not releases_are_given:
        most = calibrate_releases(plan.event, plan.budget, limit=MOST_RELEASES, accounting=plan.accounting)
        return replace(plan, releases=most, noise=replace(plan.noise, releases=most))
    spent = plan.epsilon()
    if spent > plan.budget.epsilon:
        raise UserError(
            f"{plan.releases} releases at noise multiplier {plan.noise.multiplier:g} spend epsilon {spent:.4g}, "
            f"more than the budget of {plan.budget.epsilon:g}; leave one of the three open and it is calibrated"
        )
    return plan

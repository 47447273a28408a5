"""Settings for a selective run that keeps a budget: never more than it, and within 1 % of it where that is possible.

A question has one unknown: the noise of the candidates, the noise of the gate, its threshold, the rate of its
validation batch, or the number of trials (`visible`) or releases (`hidden`). What is returned was evaluated and
found within the budget, with a cap on consecutive trials and its price in delta where `hidden` accounting needs one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

from discreet.accounting.budget import Accounting, Budget, certified_accounting
from discreet.accounting.calibration import calibrate_noise, calibrate_releases
from discreet.accounting.composition import epsilon
from discreet.accounting.events import checked_number
from discreet.accounting.selective.events import GatedTrial
from discreet.accounting.termination import SHARE_OF_DELTA, capped_delta, trial_cap

Unknown = Literal["noise_multiplier", "gate_multiplier", "gate_threshold", "gate_batch", "count"]

_LARGEST_COUNT = 10**7
_TOLERANCE = 0.01
_MOST_LENIENT = 8.0
_LEAST_GATE_NOISE = 0.3


@dataclass(frozen=True, kw_only=True)
class SelectiveRun:
    """A selective run: one gated trial, how often it is charged, and by which accounting.

    Attributes:
        examples: The number of records, public.
        batch: The expected size of the training batch.
        noise_multiplier: sigma, of the candidates.
        gate_batch: The expected size of the validation batch.
        gate_multiplier: sigma_v.
        gate_threshold: beta.
        count: How many trials under `visible` accounting, how many releases under `hidden`.
        accounting: Which of the two.
    """

    examples: int
    batch: float
    noise_multiplier: float
    gate_batch: float
    gate_multiplier: float
    gate_threshold: float = -1.0
    count: int = 1
    accounting: Accounting = Accounting.VISIBLE

    def __post_init__(self) -> None:
        if self.examples < 1 or self.count < 1:
            raise ValueError(
                f"examples and count must be at least 1, not {self.examples!r} and {self.count!r}"
            )
        for name in ("batch", "gate_batch"):
            checked_number(name, getattr(self, name), low=0.0, high=float(self.examples))
        object.__setattr__(self, "accounting", certified_accounting(self.accounting))
        _ = self.event

    @property
    def event(self) -> GatedTrial:
        """What is charged each time."""
        return GatedTrial(
            sample_rate=self.batch / self.examples,
            noise_multiplier=self.noise_multiplier,
            gate_rate=self.gate_batch / self.examples,
            gate_multiplier=self.gate_multiplier,
            gate_threshold=self.gate_threshold,
        )

    def epsilon(self, delta: float) -> float:
        """The certified epsilon of the whole run."""
        return epsilon([(self.event, self.count)], delta, accounting=self.accounting)

    def expected_trials(self) -> tuple[float, float]:
        """The fewest and the most trials that `count` releases take on average, if the run is charged by releases."""
        acceptance = self.event.acceptance
        return self.count / acceptance.high, self.count / acceptance.low


@dataclass(frozen=True, kw_only=True)
class SelectivePlan:
    """A run that keeps its budget.

    Attributes:
        run: The settings.
        epsilon: The certified epsilon at `composed_delta`.
        composed_delta: The part of the budget's delta that the composition is accounted at.
        cap: The cap on consecutive trials (`hidden` only); its price is the rest of delta.
    """

    run: SelectiveRun
    epsilon: float
    composed_delta: float
    cap: int | None = None


def plan_run(run: SelectiveRun, budget: Budget, unknown: Unknown) -> SelectivePlan:
    """The run with `unknown` calibrated to the budget; the other settings stand.

    Noise is made as small, validation batch and count as large as the budget allows. The threshold is made as strict
    as possible under `hidden` accounting, where a stricter gate costs more, and as lenient under `visible`.

    Raises:
        UserError: No value of the unknown keeps the budget.
    """
    if unknown not in get_args(Unknown):
        raise ValueError(f"unknown must be one of {', '.join(get_args(Unknown))}, not {unknown!r}")
    hidden = run.accounting is Accounting.HIDDEN
    inner = Budget(epsilon=budget.epsilon, delta=budget.delta * (1.0 - SHARE_OF_DELTA)) if hidden else budget
    if unknown == "count":
        event = run.event
        count = calibrate_releases(lambda _: event, inner, limit=_LARGEST_COUNT, accounting=run.accounting)
        return _finished(replace(run, count=count), budget, inner)
    with_value = _knobs(run)[unknown]
    knob = calibrate_noise(
        lambda x: [(with_value(x).event, run.count)], inner, accounting=run.accounting, tolerance=_TOLERANCE
    )
    return _finished(with_value(knob), budget, inner)


def _knobs(run: SelectiveRun) -> dict[str, Callable[[float], SelectiveRun]]:
    """For each unknown, the run as a function of a positive number; more of it costs less."""
    strictest = _strictest_threshold(run)

    def threshold(x: float) -> SelectiveRun:
        sign = 1.0 if run.accounting is Accounting.HIDDEN else -1.0
        return replace(run, gate_threshold=min(max(sign * math.log2(x), strictest), _MOST_LENIENT))

    return {
        "noise_multiplier": lambda x: replace(run, noise_multiplier=x),
        "gate_multiplier": lambda x: replace(run, gate_multiplier=max(x, _LEAST_GATE_NOISE)),
        "gate_batch": lambda x: replace(run, gate_batch=run.examples / max(x, 1.0)),
        "gate_threshold": threshold,
    }


def _strictest_threshold(run: SelectiveRun) -> float:
    """The smallest threshold, from -8 up, at which acceptance probabilities stay within what can be accounted."""
    thresholds = (-_MOST_LENIENT + i / 8.0 for i in range(int(16 * _MOST_LENIENT) + 1))
    return next((t for t in thresholds if _moderate(replace(run, gate_threshold=t))), _MOST_LENIENT)


def _moderate(run: SelectiveRun) -> bool:
    gate = run.event.gate
    return gate.a_min > 0.0 and gate.acceptance().moderate


def _finished(run: SelectiveRun, budget: Budget, inner: Budget) -> SelectivePlan:
    spent = run.epsilon(inner.delta)
    if run.accounting is Accounting.VISIBLE:
        return SelectivePlan(run=run, epsilon=spent, composed_delta=inner.delta)
    low = run.event.acceptance.low
    cap = trial_cap(epsilon=budget.epsilon, delta=budget.delta, lowest_acceptance=low, releases=run.count)
    total = capped_delta(epsilon=spent, delta=inner.delta, lowest_acceptance=low, releases=run.count, cap=cap)
    if total > budget.delta or spent > budget.epsilon:
        raise AssertionError(f"a plan overshoots its budget: epsilon {spent!r}, delta {total!r}")
    return SelectivePlan(run=run, epsilon=spent, composed_delta=inner.delta, cap=cap)

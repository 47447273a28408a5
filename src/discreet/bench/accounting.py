"""How long the accountant takes: one bound, a run's composition, a calibration."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from discreet.accounting import (
    Budget,
    PoissonGaussian,
    calibrate_noise,
    calibrate_releases,
    epsilon,
    rdp_curve,
)
from discreet.accounting.budget import Accounting
from discreet.accounting.events import Event
from discreet.accounting.mechanisms import gated
from discreet.accounting.rdp import ORDERS
from discreet.accounting.selective import SelectiveRun, plan_run

_DELTA = 1e-5
_BUDGET = Budget(epsilon=2.0, delta=_DELTA)


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The median time of one question, each time asked for settings that were not asked for before."""

    question: str
    milliseconds: float


def run(turns: int = 5) -> list[Timing]:
    """Ask every question a few times; no answer comes from a cache."""
    return [
        Timing(
            question=question,
            milliseconds=1e3 * statistics.median(_seconds(ask, turn) for turn in range(1, turns + 1)),
        )
        for question, ask in _QUESTIONS.items()
    ]


def table(timings: list[Timing]) -> str:
    """The timings as a Markdown table."""
    rows = [f"| {timing.question} | {timing.milliseconds:.0f} |" for timing in timings]
    return "\n".join(["| question | ms |", "|---|---|", *rows])


def _seconds(ask: Callable[[float], object], turn: int) -> float:
    began = time.perf_counter()
    ask(1.0 + turn / 997.0)
    return time.perf_counter() - began


def _plain(nudge: float) -> Event:
    return PoissonGaussian(sample_rate=0.004 * nudge, noise_multiplier=1.1)


def _trial(nudge: float) -> Event:
    return gated(sample_rate=0.034 * nudge, noise_multiplier=4.0, gate_rate=0.0043, gate_multiplier=1.3).trial


def _schedule(nudge: float) -> list[tuple[Event, int]]:
    return [
        (PoissonGaussian(sample_rate=0.004, noise_multiplier=nudge * (1.5 + 0.5 * math.cos(n / 1e4))), 1)
        for n in range(10_000)
    ]


def _selective_run(nudge: float) -> SelectiveRun:
    return SelectiveRun(
        examples=60_000,
        batch=2048 * nudge,
        noise_multiplier=4.0,
        gate_batch=256,
        gate_multiplier=1.3,
        count=1000,
    )


_QUESTIONS: dict[str, Callable[[float], object]] = {
    "DP-SGD, 10,000 equal releases: epsilon": lambda nudge: epsilon([(_plain(nudge), 10_000)], _DELTA),
    "DP-SGD, 10,000 different releases: epsilon": lambda nudge: epsilon(_schedule(nudge), _DELTA),
    "DP-SGD: noise for a budget": lambda nudge: calibrate_noise(
        lambda noise: [(PoissonGaussian(sample_rate=0.004 * nudge, noise_multiplier=noise), 5000)], _BUDGET
    ),
    "DP-SGD: releases for a budget": lambda nudge: calibrate_releases(
        lambda _: _plain(nudge), _BUDGET, limit=10**7
    ),
    "DPSUR, one bound at all orders, visible": lambda nudge: rdp_curve(
        _trial(nudge), ORDERS, Accounting.VISIBLE
    ),
    "DPSUR, one bound at all orders, hidden": lambda nudge: rdp_curve(
        _trial(nudge), ORDERS, Accounting.HIDDEN
    ),
    "DPSUR, 10,000 trials: epsilon, visible": lambda nudge: epsilon([(_trial(nudge), 10_000)], _DELTA),
    "DPSUR, 1,000 releases: epsilon, hidden": lambda nudge: epsilon(
        [(_trial(nudge), 1000)], _DELTA, accounting="hidden"
    ),
    "DPSUR: noise for a budget, visible": lambda nudge: plan_run(
        _selective_run(nudge), _BUDGET, "noise_multiplier"
    ),
}

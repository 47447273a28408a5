"""The plan of a job in a few lines that fit a terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from discreet.accounting.rounding import rounded_up

if TYPE_CHECKING:
    from discreet.jobs.carry_out import Prepared
    from discreet.plan import Plan

WIDTH = 80
_INDENT = 18


def describe_plan(prepared: Prepared) -> str:
    """What is trained on what, how, and what it costs under each accounting."""
    plan, form = prepared.plan, prepared.splits.description
    parameters = sum(each.numel() for each in prepared.model.parameters() if each.requires_grad)
    rows = [
        row("records", f"{plan.sampler.examples}, {form.classes} classes; {_evaluated(prepared)}"),
        *(row("not declared", f"{fact}: read off the records without noise") for fact in form.private_facts),
        *([] if prepared.job.features is None else [row("features", _features(prepared))]),
        row("model", f"{prepared.spec.name}, {parameters:,} parameters"),
        row(
            f"{plan.unit}s",
            f"{_at_most(plan)}{plan.releases}, Poisson batches of {plan.sampler.expected_batch_size:g} on average "
            f"(sample rate {plan.sampler.rate:.4g})",
        ),
        row(
            "noise", f"multiplier {plan.noise.multiplier:.4f} at clip norm {plan.clipping.rule.sensitivity:g}"
        ),
        row("budget", f"epsilon {plan.budget.epsilon:g} at delta {plan.budget.delta:g}"),
        row("certified", _certified(plan)),
        *_seeded(prepared),
        row("claimed", _claimed(plan)),
    ]
    return "\n".join([f"{plan.recipe} on {form.name}", *rows])


def _features(prepared: Prepared) -> str:
    shape = " x ".join(str(side) for side in prepared.splits.description.input_shape)
    return f"{prepared.job.features}, {shape}: a public function of each record"


def _at_most(plan: Plan) -> str:
    """What stands before a number of releases that a run may not reach."""
    return "at most " if plan.adapts or plan.claimed_budget is not None else ""


def _certified(plan: Plan) -> str:
    costs, held = plan.costs(), plan.accounting
    told = ", ".join(
        f"{rounded_up(value)} {name}"
        for name, value in costs.items()
        if name != "claimed" and value is not None
    )
    if plan.selecting is None:
        return f"epsilon {told} (held to {held})"
    if plan.hides_trials:
        return f"epsilon {told}, if number and timing of trials stay secret"
    return f"epsilon {told}: every trial is charged, also those that are rejected"


def _claimed(plan: Plan) -> str:
    if plan.selecting is None:
        return f"epsilon {rounded_up(plan.costs()['claimed'])} by the method's own formula; not a guarantee"
    span = plan.claimed_range()
    if span is None:
        return "known after the run, if the method has a formula; not a guarantee"
    low, high = (rounded_up(each, 2) for each in span)
    between = high if low == high else f"{low} to {high}, by how many candidates pass,"
    return f"epsilon {between} by the method's own formula; not a guarantee"


def _seeded(prepared: Prepared) -> list[str]:
    """What has to be said beside every epsilon of a run whose noise can be drawn again by anybody."""
    if prepared.job.seed is None:
        return []
    return [
        row(
            "NO GUARANTEE",
            f"seed {prepared.job.seed} is not secret: certified is what a secret key would give",
        )
    ]


def row(name: str, text: str) -> str:
    """A name and what it is, folded under itself where it is too long for one line."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=f"  {name:<{_INDENT - 2}}",
        subsequent_indent=" " * _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def clock(seconds: float) -> str:
    """A time span as people say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _evaluated(prepared: Prepared) -> str:
    public = prepared.evaluated
    if public is None:
        return "no accuracy is shown"
    return f"accuracy on {len(public)} others ({prepared.splits.declared})"

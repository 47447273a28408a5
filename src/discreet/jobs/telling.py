"""The plan of a job in a few lines that fit a terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from discreet.accounting.rounding import rounded_up

if TYPE_CHECKING:
    from discreet.jobs.carry_out import Prepared

WIDTH = 80
_INDENT = 18


def describe_plan(prepared: Prepared) -> str:
    """What is trained on what, how, and what it costs under each accounting."""
    plan, form = prepared.plan, prepared.splits.description
    costs = plan.costs()
    parameters = sum(each.numel() for each in prepared.model.parameters() if each.requires_grad)
    rows = [
        row("records", f"{plan.sampler.examples}, {form.classes} classes; {_evaluated(prepared)}"),
        *(row("not declared", f"{fact}: read off the records without noise") for fact in form.private_facts),
        row("model", f"{prepared.spec.name}, {parameters:,} parameters"),
        row(
            "releases",
            f"{plan.releases}, Poisson batches of {plan.sampler.expected_batch_size:g} on average "
            f"(sample rate {plan.sampler.rate:.4g})",
        ),
        row(
            "noise", f"multiplier {plan.noise.multiplier:.4f} at clip norm {plan.clipping.rule.sensitivity:g}"
        ),
        row("budget", f"epsilon {plan.budget.epsilon:g} at delta {plan.budget.delta:g}"),
        row(
            "certified",
            f"epsilon {rounded_up(costs['visible'])} visible, {rounded_up(costs['hidden'])} hidden "
            f"(held to {plan.accounting})",
        ),
        *_seeded(prepared),
        row(
            "claimed", f"epsilon {rounded_up(costs['claimed'])} by the method's own formula; not a guarantee"
        ),
    ]
    return "\n".join([f"{plan.recipe} on {form.name}", *rows])


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
    public = prepared.splits.public if prepared.job.evaluation else None
    if public is None:
        return "no accuracy is shown"
    return f"accuracy on {len(public)} others ({prepared.splits.declared})"

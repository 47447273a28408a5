"""The plain training that a training with a memory is fairly held against."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.recipes.remembering import Remembering

if TYPE_CHECKING:
    from discreet.jobs.carry_out import Prepared


def matched(prepared: Prepared) -> Prepared:
    """Plain DP-SGD in place of a recipe with a memory: the same records, first weights, releases and certified epsilon.

    A memory of past releases is post-processing of plain DP-SGD at sigma / beta, so that is the multiplier it is given.
    """
    recipe = prepared.job.chosen_recipe()
    assert isinstance(recipe, Remembering), "a study has made sure of that"
    plain = recipe.matched(prepared.plan)
    settings = {name: value for name, value in plain.to_json().items() if value is not None}
    return replace(
        prepared,
        job=replace(prepared.job, recipe=plain.name, settings=settings),
        plan=plain.plan(
            prepared.plan.sampler.examples, prepared.plan.budget, accounting=prepared.plan.accounting
        ),
    )

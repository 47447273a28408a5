"""The part of a page about a memory of past releases: how far it looked back, and how much it weighed."""

from __future__ import annotations

from functools import partial

from discreet.report.markup import Content, Html, element, paragraph, section, table
from discreet.report.material import Material
from discreet.report.numbers import plain
from discreet.report.plot import Axis, Plot
from discreet.report.plots import Figure, share, told_plots
from discreet.training.progress import Mark
from discreet.training.remembering import MARGINAL


def memory(material: Material) -> Html | None:
    """What is known of the memory; None for a run without one."""
    remembers = material.plan.get("memory")
    if not remembers or not material.marks:
        return None
    return section(
        "What past releases contributed",
        paragraph(
            f"Each release was blended with up to {plain(remembers['window'] - 1)} before it. What is fresh weighed "
            f"{plain(remembers['fresh_weight'])}. The memory is a function of noisy releases, so it costs nothing; "
            "every figure here is one as well."
        ),
        [plot.figure() for plot in _plots(material)],
        _stages(material),
    )


def _plots(material: Material) -> list[Plot]:
    figures: list[Figure] = [
        (
            "depth",
            "Effective memory depth",
            "How many releases back the memory lay on average.",
            Axis(label="Releases back", show=_short, include=(0.0,)),
            partial(_told, "memory depth"),
        ),
        (
            "branch",
            "The memory's share",
            "The norm of what was remembered over that of the release.",
            Axis(label="Share of the norm", show=share, include=(0.0,)),
            partial(_told, "memory ratio"),
        ),
        (
            "marginal",
            "Marginal cost of one layer: not a guarantee",
            "What one layer would have cost if it were all that is released. Every release gives away all layers at "
            "once; what is guaranteed is above.",
            Axis(label="Not a guarantee", show=_short, include=(0.0,)),
            partial(_told, MARGINAL),
        ),
    ]
    return told_plots(material, figures)


def _short(value: float) -> str:
    return plain(round(value, 3))


def _told(name: str, mark: Mark) -> float | None:
    return mark.told.get(name)


def _stages(material: Material) -> Html | None:
    """The spectrum of each stage of the network when it was first and last looked at."""
    seen = [mark.told for mark in material.marks if any(name.startswith("rho ") for name in mark.told)]
    if not seen:
        return None
    stages = [name.removeprefix("rho ") for name in seen[-1] if name.startswith("rho ")]
    rows: list[list[Content]] = [
        [
            element("code", stage),
            *(
                _short(told[f"{what} {stage}"]) if f"{what} {stage}" in told else ""
                for what in ("rho", "lambda")
                for told in (seen[0], seen[-1])
            ),
        ]
        for stage in stages
    ]
    return table(
        ["Stage", "Exponent at first", "and at last", "Tempering at first", "and at last"],
        rows,
        caption="The power-law exponent of the weights' spectrum, and how strongly it shortened the memory",
        numeric=True,
    )

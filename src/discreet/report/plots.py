"""The plots of a run: what was spent, what was reached, and what an attacker can do at most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from discreet.report.material import Bound, Material
from discreet.report.meaning import most_hits
from discreet.report.numbers import at_most, percent, plain
from discreet.report.plot import Axis, Level, Line, Plot
from discreet.training.progress import Mark


def share(value: float) -> str:
    """A share as people read it."""
    return f"{100 * value:.4g}%"


_RELEASES = Axis(label="Release", include=(0.0,))
_EPSILON = Axis(label="Epsilon spent", show=partial(at_most, digits=4))
_ACCURACY = Axis(label="Accuracy", show=share)


def _share_at_most(share: float) -> str:
    return f"{at_most(100 * share)}%"


def budget_plot(material: Material) -> Plot | None:
    """The epsilon spent after each release at which progress was told."""
    marks = material.marks
    if not marks:
        return None
    last = marks[-1]
    return Plot(
        name="budget",
        title="Budget spent",
        summary=(
            f"Epsilon grows to {at_most(last.epsilon)} after {plain(last.release)} of {plain(last.of)} "
            f"planned releases; the budget is {plain(last.budget)}."
        ),
        x=_RELEASES,
        y=Axis(label="Epsilon spent", show=_EPSILON.show, include=(0.0,)),
        line=Line(name="certified epsilon", points=[(0.0, 0.0)] + [(m.release, m.epsilon) for m in marks]),
        level=Level(name=f"budget {plain(last.budget)}", value=last.budget),
    )


def accuracy_plot(material: Material, records: str) -> Plot | None:
    """Accuracy after each release at which it was taken."""
    points = [(float(m.release), m.accuracy) for m in material.marks if m.accuracy is not None]
    if not points:
        return None
    return Plot(
        name="accuracy",
        title="Accuracy over releases",
        summary=f"Accuracy {records} goes from {percent(points[0][1])} to {percent(points[-1][1])}.",
        x=_RELEASES,
        y=_ACCURACY,
        line=Line(name="accuracy", points=points),
    )


def exchange_plot(material: Material, records: str) -> Plot | None:
    """Accuracy against the epsilon that was spent to reach it."""
    points = [(m.epsilon, m.accuracy) for m in material.marks if m.accuracy is not None]
    if not points:
        return None
    return Plot(
        name="exchange",
        title="Accuracy against epsilon",
        summary=f"What each further part of the budget brought, {records}.",
        x=Axis(label=_EPSILON.label, show=_EPSILON.show, include=(0.0,)),
        y=_ACCURACY,
        line=Line(name="accuracy", points=points),
    )


Figure = tuple[str, str, str, Axis, Callable[[Mark], float | None]]
"""Name, title, summary and vertical axis of a figure of the marks, and what it shows of each."""


def told_plots(material: Material, figures: Sequence[Figure]) -> list[Plot]:
    """The figures that marks have something for."""
    plots = [_told_plot(material, *figure) for figure in figures]
    return [plot for plot in plots if plot is not None]


def _told_plot(
    material: Material, name: str, title: str, summary: str, y: Axis, of: Callable[[Mark], float | None]
) -> Plot | None:
    """A figure of the marks over the releases; None where no mark has it."""
    points = [(float(mark.release), value) for mark in material.marks if (value := of(mark)) is not None]
    if not points:
        return None
    label = "Trial" if "trials" in material.marks[-1].told else _RELEASES.label
    return Plot(
        name=name,
        title=title,
        summary=summary,
        x=Axis(label=label, include=_RELEASES.include),
        y=y,
        line=Line(name=title.lower(), points=points),
    )


def attack_plot(bounds: Sequence[Bound]) -> Plot:
    """The bound on recognising records."""
    alarms = [
        0.0,
        0.005,
        *(number / 100 for number in range(1, 11)),
        *(number / 20 for number in range(3, 21)),
    ]
    return Plot(
        name="attack",
        title="The most that an attacker can recognise",
        summary=(
            "For each share of false alarms, the largest share of used records that any attack on the "
            "released model can point out. It follows from the certificate alone; real attacks do worse."
        ),
        x=Axis(label="Records not used that are pointed at", show=share),
        y=Axis(label="Records used that are pointed out", show=_share_at_most, include=(0.0,)),
        line=Line(
            name="upper bound",
            points=[(share, most_hits(share, bounds)) for share in alarms],
            dots=False,
        ),
        diagonal="guessing",
    )

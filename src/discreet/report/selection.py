"""The part of a page about candidates that had to pass a test: how many did, and what an update took."""

from __future__ import annotations

from discreet.report.markup import Html, paragraph, section
from discreet.report.material import Material
from discreet.report.numbers import percent, plain
from discreet.report.plot import Axis, Plot
from discreet.report.plots import Figure, share, told_plots
from discreet.training.progress import Mark


def selection(material: Material) -> Html | None:
    """What is known of the candidates; None for a run without a gate."""
    if not material.plan.get("selecting") or not material.marks:
        return None
    last = material.marks[-1].told
    if "trials" not in last:
        return section(
            "How candidates fared",
            paragraph(
                f"{plain(last['updates'])} updates were made. How many candidates were rejected before each, and how "
                "long that took, is secret under the accounting of this run, and is written down nowhere."
            ),
        )
    return section("How candidates fared", _words(material), [plot.figure() for plot in _plots(material)])


def _words(material: Material) -> Html:
    last = material.marks[-1]
    trials, rate, updates = (last.told[name] for name in ("trials", "acceptance rate", "updates"))
    each = _seconds_per_update(last)
    time = (
        "" if each is None else f" An update took {plain(round(each, 3))} s on average, its trials included."
    )
    return paragraph(
        f"{plain(trials)} candidates were made and tested with noise; {percent(rate)} of them passed, which led to "
        f"{plain(updates)} updates of the weights.{time} Every trial was charged, also those that were rejected."
    )


def _plots(material: Material) -> list[Plot]:
    figures: list[Figure] = [
        (
            "acceptance",
            "Candidates that passed",
            "The share of all candidates so far that passed the test.",
            Axis(label="Share accepted", show=share, include=(0.0, 1.0)),
            lambda mark: mark.told.get("acceptance rate"),
        ),
        (
            "updates",
            "Updates made",
            "How often the weights had been moved.",
            Axis(label="Updates", include=(0.0,)),
            lambda mark: mark.told.get("updates"),
        ),
        (
            "scores",
            "Noisy scores",
            "The mean of the noisy scores that were released since the mark before; lower is better.",
            Axis(label="Noisy score"),
            lambda mark: mark.told.get("noisy score"),
        ),
        (
            "pace",
            "Time per update",
            "Seconds since the start over updates made, rejected candidates included.",
            Axis(label="Seconds per update", include=(0.0,)),
            _seconds_per_update,
        ),
    ]
    return told_plots(material, figures)


def _seconds_per_update(mark: Mark) -> float | None:
    updates = mark.told.get("updates")
    return mark.seconds / updates if mark.seconds and updates else None

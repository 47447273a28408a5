"""The parts of a page that say what was done, how it went, and what to do with the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.accounting.rounding import rounded_up
from discreet.report import commands, plots
from discreet.report.markup import Content, Html, code, element, paragraph, section, table
from discreet.report.material import Material
from discreet.report.numbers import duration, percent, plain


def done(material: Material) -> Html:
    """The run in four numbers and one paragraph."""
    plan, sampler, certificate = material.plan, material.plan["sampler"], material.certificate
    made, planned = certificate.releases_executed, plan["releases"]
    ended = (
        "All planned releases were made."
        if made >= planned
        else f"The run was ended after {plain(made)} of {plain(planned)} planned releases."
    )
    seconds = material.marks[-1].seconds if material.marks else None
    time = "" if seconds is None else f" Training took {duration(seconds)}."
    norm, noise = plan["clipping"]["sensitivity"], round(plan["noise"]["multiplier"], 6)
    return section(
        "What was done",
        _figures(material),
        paragraph(
            f"A model was trained with {plan['recipe']}. In each of {plain(made)} steps every record entered "
            f"the batch by a coin of its own, with probability {plain(round(sampler['rate'], 6))}, so "
            f"{plain(round(sampler['examples'] * sampler['rate'], 2))} records on average. Each record's "
            f"gradient was brought to a norm of at most {plain(norm)}{_moved(plan, 'clip_schedule')}, the "
            f"gradients were added up{_weighed(plan)}, and Gaussian noise of {plain(noise)} times that norm"
            f"{_moved(plan, 'noise_schedule')} was added to every coordinate of the sum. Only these noisy sums "
            f"touched the weights; each is called a release here. {ended}{time}"
        ),
    )


def course(material: Material) -> Html | None:
    """The plots of the run, if progress was told."""
    drawn = [
        plots.budget_plot(material),
        plots.accuracy_plot(material, material.evaluated_on),
        plots.exchange_plot(material, material.evaluated_on),
    ]
    figures = [plot.figure() for plot in drawn if plot is not None]
    if not figures:
        return None
    caution = paragraph(
        f"Accuracy was taken {material.evaluated_on}. It is exact and not noised, and those records are not "
        "protected by this guarantee."
    )
    return section("How the run went", caution if len(figures) > 1 else None, figures)


def giving_away(material: Material) -> Html:
    """Which files may leave the machine."""
    weights: Content = (
        "yes" if material.certificate.guarantee else element("strong", "not if the records are private")
    )
    rows: list[list[Content]] = [
        [code("model.safetensors"), "the released weights", weights],
        [code("certificate.json"), "what is guaranteed, for programs", "yes"],
        [code("certificate.html"), "what is guaranteed, for people", "yes"],
        [code("report.html"), "this page", "yes"],
        [code("run.json"), "the plan and the settings", "yes"],
        [code("events.jsonl"), "every charge", "yes"],
        [code("metrics.jsonl"), "the course of the run", "yes"],
        [code("tensorboard/"), "the course of the run, where that log is written", "yes"],
        [
            code("private/"),
            "the state to resume from and, until the plan is complete, the key of its randomness",
            element("strong", "no, never"),
        ],
    ]
    return section(
        "What may be given away",
        paragraph(
            "Everything in the folder of the run except ",
            code("private/"),
            " is made from released values and public settings. Whoever has the key can take the noise off "
            "again. Settings contain file and column names as they were given.",
        ),
        table(["File", "What it is", "May be given away?"], rows, caption="The folder of the run"),
    )


def repeating(material: Material) -> Html:
    """The commands that check the run and that do it again."""
    again = commands.repeat(material.notes)
    if again is None:
        repeat: Content = paragraph("The run was started from Python; the same call trains again.")
    else:
        words = (
            "This trains with the same settings. The noise will be another, and the budget is spent once more: "
            "two models from the same records give away more than one."
            if material.certificate.guarantee
            else "This trains with the same settings and the same seed:"
        )
        repeat = [paragraph(words), element("pre", code(again))]
    return section(
        "Check it and do it again",
        paragraph("This recomputes the certificate from the log of charges. It needs no model and no data:"),
        element("pre", code(commands.verify(material.folder))),
        repeat,
    )


def settings(material: Material) -> Html:
    """What was planned and what was asked for."""
    plan = material.plan
    carried_out: list[list[Content]] = [
        ["recipe", plan["recipe"]],
        ["releases", plain(plan["releases"])],
        ["sample rate", plain(plan["sampler"]["rate"])],
        ["noise multiplier", plain(plan["noise"]["multiplier"])],
        ["clipping", f"{plan['clipping']['rule']}, norm {plain(plan['clipping']['sensitivity'])}"],
        ["optimizer", f"{plan['optimizer']['name']} {_listed(plan['optimizer']['settings'])}".strip()],
    ]
    asked: list[list[Content]] = [
        [name.replace("_", " "), _shown(value)]
        for name, value in plan["settings"].items()
        if value is not None
    ]
    return section(
        "Settings",
        table(["What", "Value"], carried_out, caption="The plan that was carried out"),
        table(["Setting", "Value"], asked, caption=f"The settings of {plan['recipe']}"),
    )


def _figures(material: Material) -> Html:
    certificate = material.certificate
    budget, planned = certificate.budget_epsilon, material.plan["releases"]
    told: list[tuple[str, str, str]] = [
        ("Epsilon", rounded_up(material.bound.epsilon), f"of a budget of {plain(budget)}"),
        ("Delta", plain(material.bound.delta), "the probability left aside"),
        ("Releases", plain(certificate.releases_executed), f"of {plain(planned)} planned"),
    ]
    measured = [mark.accuracy for mark in material.marks if mark.accuracy is not None]
    if measured:
        told.append(("Accuracy", percent(measured[-1]), material.evaluated_on))
    cards = [
        element("div", element("dt", name), element("dd", value), element("dd", note))
        for name, value, note in told
    ]
    return element("dl", cards, class_="figures")


def _weighed(plan: Mapping[str, Any]) -> str:
    weight = (plan.get("memory") or {}).get("sum_weight", 1.0)
    return "" if weight == 1.0 else f", the sum was multiplied by {plain(weight)}"


def _moved(plan: Mapping[str, Any], schedule: str) -> str:
    kind = (plan["settings"].get(schedule) or {}).get("kind", "constant")
    return "" if kind == "constant" else f", moved by a {kind} schedule,"


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        kind = f"{value['kind']} " if "kind" in value else ""
        return kind + _listed({name: each for name, each in value.items() if name != "kind"})
    if isinstance(value, list | tuple):
        return ", ".join(_shown(each) for each in value)
    return plain(value) if isinstance(value, float) else str(value)

"""The parts of the page, in the order in which a person who knows nothing of the run needs them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from discreet.report import commands, plots
from discreet.report.markup import Content, Html, code, element, paragraph, table
from discreet.report.material import Certified, Material
from discreet.report.meaning import most_hits, most_right_guesses
from discreet.report.numbers import at_most, duration, percent, plain


def title(material: Material) -> str:
    """What was trained on what."""
    return f"{material.data_name}, trained with {material.plan['recipe']}"


def verdict(material: Material) -> Html:
    """The guarantee, or that there is none, before anything else."""
    certified = material.certified
    if not certified.is_guarantee:
        return element(
            "aside",
            paragraph(element("strong", "No guarantee."), " This run used a fixed seed."),
            paragraph(
                "Whoever knows or guesses the seed can compute the noise and take it off. The numbers "
                "below are what the same run with a secret key would guarantee. Do not release this model "
                "if its records are private."
            ),
            class_="verdict none",
            aria_label="No guarantee",
        )
    return element(
        "aside",
        paragraph(
            element(
                "strong",
                f"({at_most(certified.bound.epsilon)}, {plain(certified.bound.delta)})-differentially "
                "private",
            ),
            f" with respect to every single record, after {plain(certified.releases)} releases.",
        ),
        class_="verdict",
        aria_label="Guarantee",
    )


def _figures(material: Material) -> Html:
    certified = material.certified
    budget = material.plan["budget"]
    told: list[tuple[str, str, str]] = [
        ("Epsilon", at_most(certified.bound.epsilon), f"of a budget of {plain(budget['epsilon'])}"),
        ("Delta", plain(certified.bound.delta), "the probability left aside"),
        ("Releases", plain(certified.releases), f"of {plain(material.plan['releases'])} planned"),
    ]
    measured = [mark for mark in material.marks if mark.accuracy is not None]
    if measured and measured[-1].accuracy is not None:
        told.append(("Accuracy", percent(measured[-1].accuracy), material.evaluated_on))
    cards = [
        element("div", [element("dt", name), element("dd", value), element("dd", note)])
        for name, value, note in told
    ]
    return element("dl", cards, class_="figures")


def _done(material: Material) -> Html:
    plan, sampler = material.plan, material.plan["sampler"]
    batch = sampler["examples"] * sampler["rate"]
    certified = material.certified
    ended = (
        "All planned releases were made."
        if certified.releases >= plan["releases"]
        else f"It was ended after {plain(certified.releases)} of {plain(plan['releases'])} planned releases."
    )
    time = f" Training took {duration(material.marks[-1].seconds)}." if material.marks else ""
    return _section(
        "What was done",
        _figures(material),
        paragraph(
            f"A model was trained with {plan['recipe']}. In each of {plain(certified.releases)} steps every "
            f"record entered the batch by a coin of its own, with probability {plain(sampler['rate'])}, so "
            f"{plain(round(batch, 2))} records on average. Each record's gradient was clipped to a norm of "
            f"at most {plain(plan['clipping']['sensitivity'])}, the clipped gradients were added up, and "
            f"Gaussian noise of {plain(round(plan['noise']['multiplier'], 6))} times that norm was added to "
            "every coordinate of the sum. Only these noisy sums touched the weights; each is called a "
            f"release here. {ended}{time}"
        ),
    )


def _meaning(material: Material) -> Html:
    certified = material.certified
    epsilon, delta = certified.bound.epsilon, certified.bound.delta
    guesses = most_right_guesses(certified.bounds)
    hits = most_hits(0.01, certified.bounds)
    return _section(
        "What it means for a person in the data",
        None
        if certified.is_guarantee
        else paragraph(
            "None of this holds for this run, whose seed is fixed. It would hold with a secret key."
        ),
        paragraph(
            "Take one person's record out of the data, or put one in, and train again: no result becomes "
            f"more than {at_most(math.exp(min(epsilon, 700.0)), 3)} times (e to the epsilon) as likely as "
            f"before, apart from a probability of {plain(delta)}. So the model says little about whether "
            "that record was there, and nothing that it holds can be pinned on that record beyond this "
            "bound.",
        ),
        element(
            "ul",
            element(
                "li",
                "Somebody knows all other records, the whole method and the released model, and has to say "
                "whether one record was used; a fair coin decided whether it was. Blind guessing is right "
                "in 50 of 100 cases. With the model the guess is right in at most ",
                element("strong", f"{at_most(100 * guesses, 3)} of 100"),
                ".",
            ),
            element(
                "li",
                "If that attacker may wrongly accuse 1 in 100 records that were not used, at most ",
                element("strong", f"{at_most(100 * hits, 3)} of 100"),
                " used records can be pointed out.",
            ),
            element(
                "li",
                "A person with several records in the data is protected less: with k records, epsilon is k "
                "times as large, and delta grows as well.",
            ),
            element(
                "li",
                "What is true of people in general can be learned from the model, and is meant to be. That "
                "is so whether or not a person's record is among those trained on.",
            ),
        ),
        plots.attack_plot(certified).figure(),
    )


def _course(material: Material) -> Html | None:
    drawn = [
        plots.budget_plot(material),
        plots.accuracy_plot(material, material.evaluated_on),
        plots.exchange_plot(material, material.evaluated_on),
    ]
    figures = [plot.figure() for plot in drawn if plot is not None]
    if not figures:
        return None
    caution = (
        paragraph(
            f"Accuracy was taken {material.evaluated_on}. It is exact and not noised, and those records are "
            "not protected by this guarantee."
        )
        if len(figures) > 1
        else None
    )
    return _section("How the run went", caution, figures)


def _accountings(material: Material) -> Html:
    certified = material.certified
    rows: list[list[Content]] = []
    for name, seen in (
        ("visible", "every released model and the outcome of every trial"),
        ("hidden", "the accepted models only; number and timing of trials stay secret"),
    ):
        value = certified.compared.get(name)
        chosen = "yes; this run was stopped by it" if name == certified.accounting else "yes; for information"
        if not certified.is_guarantee:
            chosen = "no: fixed seed"
        rows.append([name, "-" if value is None else at_most(value), seen, chosen])
    claimed = certified.compared.get("claimed")
    rows.append(
        [
            element("span", "claimed", class_="not-a-guarantee"),
            "-" if claimed is None else plain(float(f"{claimed:.4g}")),
            "what the method's paper computes",
            element("strong", "not a guarantee", class_="not-a-guarantee"),
        ]
    )
    return _section(
        "Three accountings",
        paragraph(
            "The same run, charged in three ways. The first two are certified: they are bounds, whatever "
            "the data. The third is the formula of the method's own paper, shown so that its tables can be "
            "compared with."
        ),
        table(
            ["Accounting", "Epsilon", "What an attacker is taken to see", "A guarantee?"],
            rows,
            caption=f"Epsilon at delta {plain(certified.bound.delta)}",
        ),
        table(
            ["Delta", "Epsilon"],
            [[plain(bound.delta), at_most(bound.epsilon)] for bound in certified.bounds],
            caption=f"The {certified.accounting} accounting at several deltas; all hold together",
            numeric=True,
        )
        if len(certified.bounds) > 1
        else None,
    )


def _assumptions(material: Material) -> Html | None:
    if not material.certified.assumptions:
        return None
    return _section(
        "What the guarantee rests on",
        element("ul", [element("li", each) for each in material.certified.assumptions]),
    )


def _giving_away(material: Material) -> Html:
    rows: list[list[Content]] = [
        [code("model.safetensors"), "the released weights", _whether(material.certified)],
        [code("certificate.json"), "what is guaranteed, for programs", "yes"],
        [code("certificate.html"), "what is guaranteed, for people", "yes"],
        [code("report.html"), "this page", "yes"],
        [code("run.json"), "the plan and the settings", "yes"],
        [code("events.jsonl"), "every charge", "yes"],
        [code("metrics.jsonl"), "the course of the run", "yes"],
        [code("tensorboard/"), "the course of the run, if it was asked for", "yes"],
        [
            code("private/"),
            "the state to resume from and, until the run has ended, the key of the noise",
            element("strong", "no, never"),
        ],
    ]
    return _section(
        "What may be given away",
        paragraph(
            "Everything in the folder of the run except ",
            code("private/"),
            " is made from released values and public settings. The key takes the noise off again; whoever "
            "has it has no guarantee to keep. Settings name files and columns as they were given on the "
            "command line.",
        ),
        table(["File", "What it is", "May be given away?"], rows, caption="The folder of the run"),
    )


def _commands(material: Material) -> Html:
    again = commands.repeat(material.notes)
    return _section(
        "Check it and do it again",
        paragraph(
            "This recomputes the certificate from the log of charges and compares; it needs no model and "
            "no data:"
        ),
        element("pre", code(commands.verify(material.folder))),
        [
            paragraph(
                "This trains with the same settings. The noise will be another, and the budget is spent "
                "once more: two models from the same records give away more than one."
                if material.certified.is_guarantee
                else "This trains with the same settings and the same seed:"
            ),
            element("pre", code(again)),
        ]
        if again
        else paragraph("The run was started from Python; the same call with the same settings trains again."),
    )


def _settings(material: Material) -> Html:
    plan = material.plan
    rows: list[list[Content]] = [
        ["recipe", plan["recipe"]],
        ["releases", plain(plan["releases"])],
        ["sample rate", plain(plan["sampler"]["rate"])],
        ["noise multiplier", plain(plan["noise"]["multiplier"])],
        ["clipping", f"{plan['clipping']['rule']}, norm {plain(plan['clipping']['sensitivity'])}"],
        ["optimizer", f"{plan['optimizer']['name']} {_listed(plan['optimizer']['settings'])}".strip()],
    ]
    asked: list[list[Content]] = [
        [name.replace("_", " "), _value(value)]
        for name, value in plan["settings"].items()
        if value is not None
    ]
    return _section(
        "Settings",
        table(["What", "Value"], rows, caption="The plan that was carried out"),
        table(
            ["Setting", "Value"],
            asked,
            caption=f"The settings of {plan['recipe']} that were given or are its defaults",
        ),
    )


def footer(material: Material) -> Html:
    """Who made the page, and from what."""
    return element(
        "footer",
        paragraph(
            f"Made by discreet {material.certified.version} from the public files of the run. No value of "
            "this page was computed from private records without noise."
        ),
    )


PARTS: tuple[Callable[[Material], Html | None], ...] = (
    _done,
    _meaning,
    _course,
    _accountings,
    _assumptions,
    _giving_away,
    _commands,
    _settings,
)


def _section(heading: str, *content: Content) -> Html:
    name = heading.lower().replace(" ", "-")
    return element("section", element("h2", heading, id=name), list(content), aria_labelledby=name)


def _whether(certified: Certified) -> Content:
    return (
        "yes" if certified.is_guarantee else element("strong", "not if the records are private: fixed seed")
    )


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        kind = f"{value['kind']} " if "kind" in value else ""
        return kind + _listed({name: each for name, each in value.items() if name != "kind"})
    if isinstance(value, list | tuple):
        return ", ".join(_value(each) for each in value)
    if isinstance(value, float):
        return plain(value)
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)

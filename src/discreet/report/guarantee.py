"""The parts of a page that say what is guaranteed."""

from __future__ import annotations

import math

from discreet.accounting.rounding import rounded_up
from discreet.report import plots
from discreet.report.markup import Content, Html, element, paragraph, section, table
from discreet.report.material import Material
from discreet.report.meaning import most_hits, most_right_guesses
from discreet.report.numbers import at_most, plain


def verdict(material: Material) -> Html:
    """The guarantee, or that there is none, before anything else."""
    certificate = material.certificate
    if not certificate.guarantee:
        return element(
            "aside",
            paragraph(element("strong", "No guarantee."), f" {certificate.why_no_guarantee}"),
            paragraph(
                "The numbers on this page are what the same run with a secret key would guarantee. "
                if certificate.epsilon is not None
                else None,
                "Do not release this model if its records are private.",
            ),
            class_="verdict none",
            aria_label="No guarantee",
        )
    bound = material.bound
    return element(
        "aside",
        paragraph(
            element("strong", f"({rounded_up(bound.epsilon)}, {plain(bound.delta)})-differentially private"),
            " with respect to every single record.",
        ),
        class_="verdict",
        aria_label="Guarantee",
    )


def meaning(material: Material) -> Html:
    """What the two numbers mean for somebody whose record is in the data."""
    bound = material.bound
    growth = math.exp(min(bound.epsilon, 700.0))
    guesses, hits = most_right_guesses(material.bounds), most_hits(0.01, material.bounds)
    return section(
        "What it means for a person in the data",
        None
        if material.certificate.guarantee
        else paragraph("Because there is no guarantee, nothing of the following holds for this run."),
        paragraph(
            "Take one person's record out of the data, or put one in, and train again: no result becomes more "
            f"than {at_most(growth, 3)} times (e to the epsilon) as likely as before, apart from a probability "
            f"of {plain(bound.delta)} (delta). What somebody can learn about that record from the model is "
            "limited accordingly:"
        ),
        element(
            "ul",
            element(
                "li",
                "Somebody knows all other records, the whole method and the released model, and has to say "
                "whether one record was used; a fair coin decided whether it was. Blind guessing is right in "
                "50 of 100 cases. With the model the guess is right in at most ",
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
                "What is true of people in general can be learned from the model, and is meant to be, whether "
                "or not a person's record is among those trained on.",
            ),
        ),
        plots.attack_plot(material.bounds).figure(),
    )


def accountings(material: Material) -> Html:
    """The same run charged in three ways, side by side."""
    certificate = material.certificate
    told = {
        "visible": (certificate.epsilon_visible, "all that was released, and the outcome of every trial"),
        "hidden": (certificate.epsilon_hidden, "what was released; number and timing of trials stay secret"),
    }
    rows: list[list[Content]] = []
    for name, (value, seen) in told.items():
        holds = "guaranteed, the run's own" if name == certificate.accounting else "guaranteed as well"
        note = element("small", holds if certificate.guarantee else "not guaranteed for this run")
        rows.append([[name, note], "not computed" if value is None else rounded_up(value), seen])
    claimed = certificate.epsilon_claimed
    rows.append(
        [
            element("span", "claimed", element("small", "not a guarantee"), class_="not-a-guarantee"),
            "none" if claimed is None else rounded_up(claimed),
            "the formula of the method's own paper",
        ]
    )
    stated = {each.delta: each for each in reversed(certificate.epsilons)}
    several: list[list[Content]] = [
        [at_most(delta), rounded_up(stated[delta].epsilon), stated[delta].why] for delta in sorted(stated)
    ]
    return section(
        "Three accountings",
        paragraph(
            "The first two are certified: they are upper bounds, whatever the data. The third is shown so that "
            "a run can be compared with published tables."
        ),
        table(
            ["Accounting", "Epsilon", "What an attacker is taken to see"],
            rows,
            caption=f"Epsilon at delta {plain(material.bound.delta)}",
        ),
        table(
            ["Delta", "Epsilon", "Which delta"],
            several,
            caption=f"The {certificate.accounting} accounting at several deltas; all hold together",
            numeric=True,
        ),
        _ended_early(material),
    )


def grounds(material: Material) -> Html:
    """What the guarantee rests on, and what it does not cover."""
    certificate = material.certificate
    number = "declared public" if certificate.trained_on.records_public else "not declared public"
    return section(
        "What the guarantee rests on",
        paragraph(certificate.neighbours),
        element(
            "ul",
            element(
                "li",
                f"Number of records: {plain(certificate.trained_on.records)}, {number}. It enters the sample "
                "rate as a constant; the guarantee does not hide it.",
            ),
            element("li", f"Batches: {certificate.sampler}"),
            element("li", f"Noise: {certificate.noise_source}"),
            [element("li", each) for each in (*certificate.threat_model, *certificate.assumptions)],
        ),
    )


def _ended_early(material: Material) -> Html | None:
    certificate = material.certificate
    if not certificate.ended_early or certificate.epsilon_of_what_ran is None:
        return None
    return paragraph(
        f"The run was ended early. The guarantee is that of the whole plan. The releases that were made cost "
        f"epsilon {rounded_up(certificate.epsilon_of_what_ran)}. {certificate.epsilon_of_what_ran_needs}"
    )

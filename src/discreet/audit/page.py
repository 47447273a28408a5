"""The page of an audit: plots and figures, with a sentence under each for those who do not do this every day."""

from __future__ import annotations

import math

from discreet import __version__
from discreet.accounting.rounding import rounded_up
from discreet.audit.attack import AttackReport, Reached
from discreet.audit.game import CanaryAudit
from discreet.report.document import document
from discreet.report.markup import Content, Html, element, paragraph, section, table
from discreet.report.plot import Axis, Line, Plot

_FEWEST = 1e-4
_MADE = f"Made by discreet {__version__}. An audit is for the person who holds the records; it is no part of a release."


def canary_page(audit: CanaryAudit) -> str:
    """What the canaries proved, next to what is certified."""
    rows: list[list[Content]] = [["certified: at most", rounded_up(audit.certified), "the run's certificate"]]
    for name, value, source in (
        ("proven: at least, assuming nothing", audit.one_run, "Steinke, Nasr, Jagielski 2023"),
        ("proven: at least, for this mechanism", audit.by_curve, "Mahloujifar, Melis, Chaudhuri 2024"),
        ("proven: at least, canaries pooled", audit.pooled, "after Nasr et al. 2023"),
    ):
        if value is not None:
            rows.append([name, f"{value:.3f}", source])
    if audit.claimed is not None:
        rows.append(["claimed: no guarantee", f"{audit.claimed:.3f}", "the formula of the method's paper"])
    return document(
        section(
            "What was proven",
            table(["epsilon", "value", "by"], rows, caption=f"At delta {audit.delta:g}", numeric=True),
            paragraph(
                "The lower figures are what an adversary can be shown to learn, the upper one is what nobody can learn "
                "more than. A lower figure above the certified one would mean that the program is wrong."
            ),
        ),
        section(
            "How",
            paragraph(
                f"{audit.canaries:,} records made to be found were put into a training run or left out, each by the "
                f"toss of a coin. The adversary saw all {audit.updates:,} updates and guessed {audit.guessed:,} of the "
                f"coins; {audit.right:,} guesses were right. Each figure is wrong with a probability of at most "
                f"{1 - audit.confidence:.1%}."
            ),
        ),
        title=f"Canaries in a run of {audit.recipe}",
        kicker="Audit",
        verdict=_verdict("The certificate is refuted." if audit.refuted else None, audit.sentence()),
        made=_MADE,
    )


def attack_page(report: AttackReport) -> str:
    """What membership attacks reached."""
    kind = "without privacy" if report.certified is None else f"at certified epsilon {report.certified:.3g}"
    recipe = report.subject.job.recipe if report.subject.private else "plain training"
    return document(
        *(_part(each, report) for each in report.reached),
        title=f"Attacks on {recipe} {kind}",
        kicker=f"Audit on {report.subject.job.data}",
        verdict=_verdict(None, _told(report)),
        made=_MADE,
    )


def _told(report: AttackReport) -> str:
    best = max(report.reached, key=lambda each: each.measures.auc.value)
    return (
        f"The best attack, {best.name}, ranks a record that was used above one that was not in "
        f"{best.measures.auc.value:.1%} of all cases; guessing does in 50%."
    )


def _part(each: Reached, report: AttackReport) -> Html:
    found = each.measures
    figures: list[list[Content]] = [
        [name, f"{one.value:.4f}", f"{one.low:.4f} to {one.high:.4f}"]
        for name, one in (
            ("area under the curve", found.auc),
            ("recognised at 0.1 % false alarms", found.hits_at_thousandth),
            ("recognised at 1 % false alarms", found.hits_at_hundredth),
            ("balanced accuracy", found.balanced_accuracy),
        )
    ]
    if each.proven is not None:
        figures.append(
            [
                "epsilon proven",
                f"{each.proven:.4f}",
                f"at least, with confidence {report.confidence:.0%}, at delta {report.delta:g}",
            ]
        )
    return section(
        each.name,
        roc_plot(each).figure(),
        table(["figure", "value", "95 % interval"], figures, caption=f"{each.name} in figures", numeric=True),
    )


def roc_plot(each: Reached) -> Plot:
    """The curve on logarithmic axes: what matters is the left end, where few are accused wrongly."""
    points = [
        (math.log10(max(alarm, _FEWEST)), math.log10(max(hit, _FEWEST)))
        for alarm, hit in zip(each.alarms, each.hits, strict=True)
        if hit > 0.0
    ]
    found = each.measures
    return Plot(
        name=each.name.replace(" ", "-"),
        title="Who is recognised, at how many false alarms",
        summary=(
            "If one of a thousand records that were not used may be accused wrongly, the attack recognises "
            f"{found.hits_at_thousandth.value:.2%} of the {found.members:,} records that were used; guessing would "
            "recognise 0.1%."
        ),
        x=Axis(label="Records not used that are accused", show=_share, include=(-4.0, 0.0)),
        y=Axis(label="Records used that are recognised", show=_share, include=(-4.0, 0.0)),
        line=Line(name=each.name, points=points or [(-4.0, -4.0), (0.0, 0.0)], dots=False),
        diagonal="guessing",
    )


def _share(log_share: float) -> str:
    return f"{100.0 * 10.0**log_share:.3g}%"


def _verdict(alarm: str | None, told: str) -> Html:
    return element(
        "aside",
        paragraph(element("strong", alarm), " ", told) if alarm else paragraph(told),
        class_="verdict none" if alarm else "verdict",
        aria_label="Result",
    )

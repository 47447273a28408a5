"""The certificate as one self-contained page that a privacy officer can read, print and keep."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape
from string import Template
from typing import Any

from discreet.accounting.certificate import Certificate
from discreet.accounting.page_template import PAGE
from discreet.accounting.rounding import rounded_up


def certificate_page(certificate: Certificate) -> str:
    """The page as HTML text: no scripts, no fonts or images from elsewhere."""
    c = certificate
    return Template(PAGE).substitute(
        title=escape(f"Privacy certificate: {c.recipe} on {c.trained_on.name}"),
        status_class="good" if c.guarantee else "bad",
        status=_status(c),
        promise=_promise(c),
        caveat=_caveat(c),
        facts=_rows(_facts(c)),
        epsilons=_rows(
            (f"{each.delta:.3g}" + (f" ({each.why})" if each.why else ""), rounded_up(each.epsilon, 3))
            for each in c.epsilons
        ),
        accountings=_accountings(c),
        stopping=_stopping(c),
        neighbours=escape(c.neighbours),
        assumptions=_items(c.assumptions),
        threat_model=_items(c.threat_model),
        planned=_events(c.planned),
        charged=_events(c.charged),
        settings=_rows((str(name), json.dumps(value)) for name, value in c.settings.items()),
    )


def _status(c: Certificate) -> str:
    if c.guarantee:
        return f"Guarantee: epsilon {_number(c.epsilon)} at delta {c.budget_delta:.3g}"
    return f"No guarantee. {escape(c.why_no_guarantee)}"


def _promise(c: Certificate) -> str:
    if c.epsilon is None:
        return "No finite bound holds: the released model may reveal whether a person's record was used."
    return (
        "Whatever someone concludes from the released model, they could have concluded nearly as well had any one "
        f"person's record been left out: every probability changes by a factor of at most {_factor(c.epsilon)} "
        f"(e to the power {_number(c.epsilon)}), except with a chance of about {c.budget_delta:.3g}."
    )


def _factor(epsilon: float) -> str:
    return f"{2.718281828459045**epsilon:.3g}" if epsilon < 20 else "astronomical size"


def _caveat(c: Certificate) -> str:
    if c.guarantee:
        return ""
    return (
        '<p class="note">The numbers below are what the same settings give with secret noise. '
        "They promise nothing about this run.</p>"
    )


def _facts(c: Certificate) -> Iterable[tuple[str, str]]:
    records = f"{c.trained_on.records:,}"
    yield "Trained on", c.trained_on.name
    yield (
        "Number of records",
        f"{records} ({'declared public' if c.trained_on.records_public else 'private'})",
    )
    if c.trained_on.schema_hash:
        yield "Hash of the records' schema (not of the data)", c.trained_on.schema_hash
    yield "Method", c.recipe
    yield "How records were sampled", c.sampler
    yield "Where the noise came from", c.noise_source
    yield "Budget", f"epsilon {c.budget_epsilon:g} at delta {c.budget_delta:.3g}"
    yield "Accounting", f"{c.accounting}, composed by {c.calculus}, filter {c.filter}"
    if c.releases_planned is not None:
        yield "Releases planned", f"{c.releases_planned:,}"
    yield "Releases charged", f"{c.releases_charged:,}"
    yield "Releases made", f"{c.releases_executed:,}"
    yield "Software", c.library


def _accountings(c: Certificate) -> str:
    chosen = {"visible": " (this run's)", "hidden": " (this run's)"}
    rows = [
        (
            f"visible{chosen['visible'] if c.accounting == 'visible' else ''}",
            "sees accepted models and the outcome of every trial",
            _number(c.epsilon_visible),
            "yes",
        ),
        (
            f"hidden{chosen['hidden'] if c.accounting == 'hidden' else ''}",
            "sees accepted models only; number and timing of trials are secret",
            _number(c.epsilon_hidden),
            "yes, if that is so",
        ),
        ("claimed", "the formula of the method's paper", _number(c.epsilon_claimed), "no: not a guarantee"),
    ]
    return _rows(rows)


def _stopping(c: Certificate) -> str:
    if not c.ended_early or c.epsilon_of_what_ran is None:
        return ""
    return (
        f"<p>The run ended early, after {c.releases_executed:,} of {c.releases_planned:,} releases. The guarantee is "
        f"still that of the whole plan, because the decision to stop may itself have used private data. What was made "
        f"would cost epsilon {_number(c.epsilon_of_what_ran)}. {escape(c.epsilon_of_what_ran_needs)}</p>"
    )


def _events(runs: Iterable[Mapping[str, Any]]) -> str:
    rows = [
        (
            f"{run['count']:,}",
            run["event"]["kind"],
            ", ".join(f"{k} = {v}" for k, v in run["event"].items() if k != "kind"),
        )
        for run in runs
    ]
    return _rows(rows[:_MOST_RUNS]) + (
        f'<tr><td colspan="3">and {len(rows) - _MOST_RUNS:,} further runs, in the file</td></tr>'
        if len(rows) > _MOST_RUNS
        else ""
    )


_MOST_RUNS = 40


def _rows(rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(
        f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )


def _items(sentences: Iterable[str]) -> str:
    return "\n".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)


def _number(value: float | None) -> str:
    return "not given" if value is None else rounded_up(value, 3)

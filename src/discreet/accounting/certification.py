"""Make a run's certificate from its log, and check a certificate against the log.

The epsilon that counts is the one of the whole plan (or of the Renyi filter's curve), also when the run ended
early: the decision to stop may have looked at released models, which is a choice made in view of private
data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from importlib import metadata
from pathlib import Path
from typing import Any

from discreet.accounting.budget import Accounting
from discreet.accounting.certificate import (
    ASSUMPTIONS,
    CERTIFICATE_NAME,
    SECRET_TRIALS,
    SEEDED,
    Certificate,
    EpsilonAt,
    TrainedOn,
)
from discreet.accounting.composition import epsilon
from discreet.accounting.events import Event, event_from_json
from discreet.accounting.filter import open_filter
from discreet.accounting.history import History, first_releases
from discreet.accounting.log import read_log
from discreet.errors import UserError

_DELTAS = (1e-5, 1e-6, 1e-7)
_AGREE = 1e-6


def build_certificate(
    history: History,
    *,
    recipe: str,
    settings: Mapping[str, Any],
    trained_on: TrainedOn,
    sampler: str,
    noise_source: str,
    executed: int | None = None,
    claimed_epsilon: float | None = None,
    charges_visible: Sequence[tuple[Event, int]] | None = None,
    charges_hidden: Sequence[tuple[Event, int]] | None = None,
    assumptions: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
) -> Certificate:
    """The certificate of a run, computed from what its log says.

    Args:
        history: The run's log, from `read_log`.
        recipe: The name of the recipe.
        settings: Its settings, as JSON values.
        trained_on: The data set.
        sampler: How batches were drawn, in words.
        noise_source: Where the noise came from, in words.
        executed: The number of releases that were made; by default all that were charged.
        claimed_epsilon: What the method's paper would claim, for information.
        charges_visible: The charges under `visible`, for information, when the run was charged otherwise.
        charges_hidden: The charges under `hidden`, for information, when the run was charged otherwise.
        assumptions: What this run assumes beyond the usual.
        extra: Further JSON values for the record; they are not verified.
    """
    header = history.header
    executed = history.charged if executed is None else executed
    if not 0 <= executed <= history.charged:
        raise ValueError(
            f"executed must be between 0 and the {history.charged} charged releases, not {executed}"
        )
    counted = history.charges() if header.plan is None else header.plan.charges()
    by_accounting: dict[Accounting, Sequence[tuple[Event, int]] | None] = {
        Accounting.VISIBLE: charges_visible,
        Accounting.HIDDEN: charges_hidden,
    }
    by_accounting[header.accounting] = counted
    other = {
        accounting: None if charges is None else _encoded(charges)
        for accounting, charges in by_accounting.items()
        if accounting is not header.accounting
    }
    numbers = _numbers(history, trained_on.records, other, executed)
    why_not = "" if header.secure_noise else SEEDED
    if numbers["epsilon"] is None:
        why_not = "No finite epsilon can be certified."
    planned = header.plan.total if header.plan is not None and header.filter == "planned" else None
    return Certificate(
        library=f"discreet {_version()}",
        recipe=recipe,
        settings=dict(settings),
        trained_on=trained_on,
        guarantee=not why_not,
        why_no_guarantee=why_not,
        sampler=sampler,
        noise_source=noise_source,
        assumptions=(*_usual_assumptions(header.accounting), *assumptions),
        accounting=header.accounting.value,
        calculus=header.calculus,
        filter=header.filter,
        budget_epsilon=header.budget.epsilon,
        budget_delta=header.budget.delta,
        epsilon_claimed=claimed_epsilon,
        releases_planned=planned,
        releases_charged=history.charged,
        releases_executed=executed,
        ended_early=planned is not None and executed < planned,
        planned=() if header.plan is None else _encoded(counted),
        charged=_encoded(history.charges()),
        charges_visible=other.get(Accounting.VISIBLE),
        charges_hidden=other.get(Accounting.HIDDEN),
        extra=dict(extra or {}),
        **numbers,
    )


def verify_certificate(folder: Path | str) -> list[str]:
    """Recompute a run's certificate from its log; the differences in words, none if it is right.

    Numbers may differ by a millionth, for another version of the numerical libraries. What the log does not
    hold (the recipe's name and settings, the data set, the claimed epsilon, `extra`) cannot be verified
    from it.
    """
    path = Path(folder) / CERTIFICATE_NAME
    try:
        stated = Certificate.from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: the run has no certificate yet") from None
    history = read_log(folder)
    if not 0 <= stated.releases_executed <= history.charged:
        return [f"releases_executed: {stated.releases_executed}, but the log has {history.charged} charges"]
    recomputed = build_certificate(
        history,
        recipe=stated.recipe,
        settings=stated.settings,
        trained_on=stated.trained_on,
        sampler=stated.sampler,
        noise_source=stated.noise_source,
        executed=stated.releases_executed,
        claimed_epsilon=stated.epsilon_claimed,
        charges_visible=_decoded(stated.charges_visible),
        charges_hidden=_decoded(stated.charges_hidden),
        assumptions=tuple(stated.assumptions)[len(_usual_assumptions(history.header.accounting)) :],
        extra=stated.extra,
    )
    differences = []
    for each in fields(Certificate):
        if each.name == "library":
            continue
        said, found = getattr(stated, each.name), getattr(recomputed, each.name)
        if not _agree(_plain(said), _plain(found)):
            differences.append(f"{each.name}: the certificate says {said!r}, the log gives {found!r}")
    return differences


def _numbers(
    history: History,
    records: int,
    other: Mapping[Accounting, Sequence[Mapping[str, Any]] | None],
    executed: int,
) -> dict[str, Any]:
    header = history.header
    guard = open_filter(header)
    deltas = [(header.budget.delta, "the budget's")]
    deltas += [(delta, "") for delta in _DELTAS if delta != header.budget.delta]
    if records > 1:
        deltas.append((records**-1.1, "number of records to the power -1.1"))
    epsilons = tuple(
        EpsilonAt(delta=delta, epsilon=_finite(guard.certified_epsilon(delta)), why=why)
        for delta, why in deltas
    )
    by_accounting: dict[Accounting, float | None] = {header.accounting: epsilons[0].epsilon}
    for accounting, charges in other.items():
        if charges is not None:
            by_accounting[accounting] = _finite(
                epsilon(
                    _decoded(charges) or (),
                    header.budget.delta,
                    accounting=accounting,
                    calculus=header.calculus,
                )
            )
    ran = None
    if header.filter == "planned":  # under a Renyi filter the events themselves may have depended on the data
        made = [*((event, 1) for _, event in history.once), *first_releases(history.releases, executed)]
        ran = _finite(
            epsilon(made, header.budget.delta, accounting=header.accounting, calculus=header.calculus)
        )
    return {
        "epsilon": epsilons[0].epsilon,
        "epsilons": epsilons,
        "epsilon_of_what_ran": ran,
        "epsilon_visible": by_accounting.get(Accounting.VISIBLE),
        "epsilon_hidden": by_accounting.get(Accounting.HIDDEN),
    }


def _usual_assumptions(accounting: Accounting) -> tuple[str, ...]:
    return (*ASSUMPTIONS, SECRET_TRIALS) if accounting is Accounting.HIDDEN else ASSUMPTIONS


def _encoded(charges: Sequence[tuple[Event, int]]) -> tuple[Mapping[str, Any], ...]:
    return tuple({"event": event.to_json(), "count": count} for event, count in charges)


def _decoded(charges: Sequence[Mapping[str, Any]] | None) -> list[tuple[Event, int]] | None:
    return None if charges is None else [(event_from_json(each["event"]), each["count"]) for each in charges]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    """The value as JSON would give it back."""
    return json.loads(json.dumps(value, default=asdict))


def _agree(said: Any, found: Any) -> bool:
    if isinstance(said, float) and isinstance(found, float):
        return math.isclose(said, found, rel_tol=_AGREE)
    if isinstance(said, dict) and isinstance(found, dict):
        return said.keys() == found.keys() and all(_agree(said[key], found[key]) for key in said)
    if isinstance(said, list) and isinstance(found, list):
        return len(said) == len(found) and all(_agree(a, b) for a, b in zip(said, found, strict=True))
    return type(said) is type(found) and bool(said == found)


def _version() -> str:
    try:
        return metadata.version("discreet")
    except metadata.PackageNotFoundError:
        return "(not installed)"

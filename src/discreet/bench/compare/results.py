"""What became of each cell, read from its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.accounting.certificate import Certificate
from discreet.accounting.log import read_log
from discreet.bench.compare.places import CELLS, ERROR, SECONDS
from discreet.bench.compare.study import Cell, Study
from discreet.training.files import read_json
from discreet.training.folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class Row:
    """A cell and its result.

    Attributes:
        method: the method's label.
        recipe: its recipe.
        data: the data set.
        epsilon: what was asked for, `claimed` or certified.
        claimed: which of the two.
        seed: the seed.
        point: the values taken from the grid.
        folder: the cell's run.
        state: "done", "failed" or "waiting".
        error: why it failed.
        accuracy: at the end, on the evaluation records.
        epsilon_certified: a bound on what was done; for a cell that ended by a claimed epsilon, that of what ran.
        epsilon_claimed: by the paper's formula; no guarantee.
        accounting: by which accounting it is certified.
        delta: of all three.
        releases: what was charged and done.
        updates: how often the weights moved.
        acceptance: the share of candidates that passed a gate.
        seconds: how long its last attempt took.
    """

    method: str
    recipe: str
    data: str
    epsilon: float
    claimed: bool
    seed: int
    point: Mapping[str, Any]
    folder: str
    state: str
    error: str = ""
    accuracy: float | None = None
    epsilon_certified: float | None = None
    epsilon_claimed: float | None = None
    accounting: str | None = None
    delta: float | None = None
    releases: int | None = None
    updates: int | None = None
    acceptance: float | None = None
    seconds: int | None = None


def collect(study: Study, folder: Path) -> list[Row]:
    """One row a cell, in the order of the study."""
    return [_row(cell, folder / CELLS / cell.name) for cell in study.cells()]


def charges(row: Row, folder: Path) -> list[tuple[Any, int]] | None:
    """All that a row's run planned to charge; None where it adapts to what it releases."""
    header = read_log(folder / CELLS / row.folder).header
    return None if header.plan is None else header.plan.charges()


def _row(cell: Cell, place: Path) -> Row:
    facts: dict[str, Any] = {"state": "waiting", "recipe": cell.settings["recipe"]}
    if (place / SECONDS).is_file():
        facts |= {"state": "done", **_result(cell, RunFolder(place)), "seconds": read_json(place / SECONDS)}
    elif (place / ERROR).is_file():
        facts |= {"state": "failed", "error": (place / ERROR).read_text()}
    return Row(
        method=cell.method,
        data=cell.data,
        epsilon=cell.epsilon,
        claimed=cell.claimed,
        seed=cell.seed,
        point=cell.point,
        folder=place.name,
        **facts,
    )


def _result(cell: Cell, run: RunFolder) -> dict[str, Any]:
    certificate = Certificate.from_json(run.certificate.read_text())
    last = json.loads(run.metrics.read_text().splitlines()[-1])
    told = last["told"]
    return {
        "recipe": certificate.recipe,
        "accuracy": last["accuracy"],
        "epsilon_certified": certificate.epsilon_of_what_ran if cell.claimed else certificate.epsilon,
        "epsilon_claimed": certificate.epsilon_claimed,
        "accounting": certificate.accounting,
        "delta": certificate.budget_delta,
        "releases": certificate.releases_executed,
        "updates": round(told.get("updates", certificate.releases_executed)),
        "acceptance": told.get("acceptance rate"),
    }

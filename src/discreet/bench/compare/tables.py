"""A study's results as Markdown for people, and as Parquet for programs."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from discreet.accounting import epsilon
from discreet.accounting.rounding import rounded_up
from discreet.bench.compare.results import Row, charges

MARKDOWN, PARQUET = "results.md", "results.parquet"


@dataclass(frozen=True, kw_only=True)
class Group:
    """The rows that differ by their seeds only.

    Attributes:
        rows: those that are done.
        tried: one row of each point of a grid that this one was chosen from, by accuracy.
    """

    rows: Sequence[Row]
    tried: Sequence[Row]

    def mean(self, value: Callable[[Row], float | int | None]) -> float | None:
        """The mean over seeds of what the rows have."""
        known = [found for row in self.rows if (found := value(row)) is not None]
        return statistics.fmean(known) if known else None

    def accuracy(self) -> str:
        """Mean and standard deviation over the seeds, in percent."""
        known = [100.0 * row.accuracy for row in self.rows if row.accuracy is not None]
        if not known:
            return "-"
        spread = f" ± {statistics.stdev(known):.2f}" if len(known) > 1 else ""
        return f"{statistics.fmean(known):.2f}{spread}"


Groups = Mapping[tuple[str, float], Group]
"""By method and epsilon."""


def write(rows: Sequence[Row], folder: Path) -> str:
    """Put both tables into the folder; the one for people is returned as well."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain = [{**asdict(row), "point": json.dumps(dict(row.point))} for row in rows]
    pq.write_table(pa.Table.from_pylist(plain), folder / PARQUET)
    text = markdown(rows, folder)
    (folder / MARKDOWN).write_text(text, encoding="utf-8")
    return text


def markdown(rows: Sequence[Row], folder: Path) -> str:
    """Accuracy by method and epsilon, what each really cost, and what is missing."""
    parts = [
        "Every run has a seed, so that it can be repeated: none of these models is guaranteed anything. *Certified* is "
        "what a secret key would give."
    ]
    for data in dict.fromkeys(row.data for row in rows):
        here = [row for row in rows if row.data == data]
        groups = _groups(here)
        parts += [f"## {data}", _accuracies(here, groups), _details(groups, folder)]
    missing = [row for row in rows if row.state != "done"]
    if missing:
        parts += ["## Not done", _missing(missing)]
    return "\n\n".join(parts) + "\n"


def _groups(rows: Iterable[Row]) -> Groups:
    """By method and epsilon; of a grid, the point with the best mean accuracy."""
    found: dict[tuple[str, float], dict[str, list[Row]]] = {}
    for row in rows:
        if row.state == "done":
            points = found.setdefault((row.method, row.epsilon), {})
            points.setdefault(json.dumps(dict(row.point), sort_keys=True), []).append(row)
    return {kind: _best(points) for kind, points in found.items()}


def _best(points: dict[str, list[Row]]) -> Group:
    def accuracy(group: Group) -> float:
        found = group.mean(lambda row: row.accuracy)
        return -math.inf if found is None else found

    tried = [rows[0] for rows in points.values()]
    return max((Group(rows=rows, tried=tried) for rows in points.values()), key=accuracy)


def _accuracies(rows: Sequence[Row], groups: Groups) -> str:
    epsilons = list(dict.fromkeys(row.epsilon for row in rows))
    lines = [
        "Accuracy in percent, mean ± standard deviation over the seeds, at the end of each run.",
        "",
        "| method | " + " | ".join(f"epsilon {each:g}" for each in epsilons) + " |",
        "|---" * (len(epsilons) + 1) + "|",
    ]
    for method in dict.fromkeys(row.method for row in rows):
        cells = [groups[method, each].accuracy() if (method, each) in groups else "-" for each in epsilons]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _details(groups: Groups, folder: Path) -> str:
    lines = [
        "What was spent, means over the seeds. *Certified* is a bound, by the accounting named; *claimed* is the "
        "method's own formula, and no guarantee.",
        "",
        "| method | epsilon | certified | claimed | releases | updates | accepted | seconds | seeds | choice |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (method, asked), group in groups.items():
        first = group.rows[0]
        acceptance = group.mean(lambda row: row.acceptance)
        lines.append(
            f"| {method} | {asked:g}{' claimed' if first.claimed else ''} "
            f"| {_number(group.mean(lambda row: row.epsilon_certified))} {first.accounting} "
            f"| {_number(group.mean(lambda row: row.epsilon_claimed))} "
            f"| {_count(group.mean(lambda row: row.releases))} | {_count(group.mean(lambda row: row.updates))} "
            f"| {'-' if acceptance is None else f'{acceptance:.1%}'} "
            f"| {_count(group.mean(lambda row: row.seconds))} | {len(group.rows)} | {_choice(group, folder)} |"
        )
    return "\n".join(lines)


def _choice(group: Group, folder: Path) -> str:
    """Which point of a grid it is, and what choosing it on private records would have cost."""
    number, first = len(group.tried), group.rows[0]
    if number == 1:
        return ""
    point = ", ".join(f"{name} {value}" for name, value in first.point.items())
    planned = [charges(row, folder) for row in group.tried]
    told = f"{point}; best of {number} by the accuracy shown"
    if None in planned or first.delta is None or first.accounting is None:
        return told
    everything = [charge for some in planned if some is not None for charge in some]
    cost = epsilon(everything, first.delta, accounting=first.accounting)
    return (
        f"{told}. A choice that looks at the private records costs all of them: epsilon {rounded_up(cost, 2)}"
    )


def _missing(rows: Sequence[Row]) -> str:
    lines = ["| method | data | epsilon | seed | state | why |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {row.method} | {row.data} | {row.epsilon:g} | {row.seed} | {row.state} | {row.error.replace('|', '/')} |"
        for row in rows
    ]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else rounded_up(value, 3)


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"

"""Try to exceed the certified bounds with 100,000 explicit mechanisms and more, and write down what came of it.

    python benchmarks/adversarial_accounting.py --cases 100000 --seed 1 --record docs/adversarial-run.md

The hunt is that of `tests/accounting/oracle`, which runs a few thousand cases on every change: random toy data sets
with random gates, and gates found by ascent, whose exact divergences are compared with what the package certifies.
The exit status is 1 if a bound was exceeded; the record then names the mechanism.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "accounting" / "oracle"))

from hunts import HUNTS, Bounds, Case, judge  # noqa: E402

SHARES = {
    "toys": 10,
    "ascents": 10,
    "profiles": 3,
    "batches": 4,
    "scored batches": 2,
    "choices": 6,
    "other profiles": 2,
}
"""How many rounds of each hunt make one round of the whole."""

_SMALLEST = 1e-12
"""Bounds below it are counted as kept or exceeded, but a ratio to them says nothing."""


@dataclass
class Tally:
    """What is remembered of the cases of one claim."""

    cases: int = 0
    infinite: int = 0
    ratios: list[float] = field(default_factory=lambda: [0.0])

    def add(self, case: Case) -> None:
        """Count a case."""
        self.cases += 1
        self.infinite += not np.isfinite(case.bound)
        if _SMALLEST < case.bound < np.inf:
            self.ratios.append(case.exact / case.bound)


def cases(seed: int) -> Iterator[Case]:
    """Cases without end; the seed fixes them."""
    rng, bounds = np.random.default_rng(seed), Bounds()
    while True:
        for name, rounds in SHARES.items():
            for _ in range(rounds):
                yield from judge(HUNTS[name](rng), bounds)


def revision() -> str:
    """The source that is being run."""
    answer = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip() or "unknown"


def record(
    tallies: dict[str, Tally], violations: list[Case], *, seed: int, source: str, seconds: float
) -> str:
    """The result as a page of Markdown."""
    total = sum(tally.cases for tally in tallies.values())
    lines = [
        "# Adversarial run",
        "",
        "What explicit mechanisms leak, beside what the package certifies. Made by",
        f"`python benchmarks/adversarial_accounting.py --cases {total} --seed {seed}`;",
        "the same seed gives the same cases.",
        "",
        f"- {total:,} cases, **{len(violations)} above a certified bound** (relative tolerance 1e-9).",
        f"- Revision {source}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}; {seconds / 60:.0f} minutes on one core of {platform.machine()}.",
        "",
        "A case is one explicit mechanism at one Renyi order or epsilon, in one direction. The ratio is the",
        "exact divergence over the bound: 1 means that a bound is attained. Random toys are far below the",
        "bounds, ascents come close to those that are exact. Theorems are those of [proofs.md](proofs.md).",
        "",
        "| claim | cases | exceeded | largest ratio | 99 % | median | infinite bounds |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    exceeded: dict[str, int] = defaultdict(int)
    for case in violations:
        exceeded[case.claim] += 1
    for claim, tally in sorted(tallies.items()):
        ratios = np.array(tally.ratios)
        lines.append(
            f"| {claim} | {tally.cases:,} | {exceeded[claim]} | {ratios.max():.9f} | {np.quantile(ratios, 0.99):.6f} "
            f"| {np.median(ratios):.3f} | {tally.infinite} |"
        )
    lines += ["", "## Exceeded", ""] if violations else []
    lines += [f"- {v.claim}: exact {v.exact!r}, bound {v.bound!r}; {v.where}" for v in violations[:50]]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Hunt until enough cases are done, then write the record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=100_000, help="at least so many cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--record", type=Path, help="write the result to this page; otherwise to the terminal"
    )
    arguments = parser.parse_args()
    start, source = time.process_time(), revision()
    tallies: dict[str, Tally] = defaultdict(Tally)
    violations: list[Case] = []
    for count, case in enumerate(cases(arguments.seed), 1):
        tallies[case.claim].add(case)
        if case.violated:
            violations.append(case)
            print(f"exceeded: {case}", file=sys.stderr, flush=True)
        if count >= arguments.cases:
            break
        if count % 10_000 == 0:
            print(f"{count:,} cases, {len(violations)} exceeded", file=sys.stderr, flush=True)
    page = record(
        tallies, violations, seed=arguments.seed, source=source, seconds=time.process_time() - start
    )
    if arguments.record:
        arguments.record.write_text(page, encoding="utf-8")
    else:
        print(page)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())

"""Made-up patients to try `examples/patients.toml` on: nobody's records, drawn from a formula.

python examples/make_patients.py patients.csv 5000
discreet train --config examples/patients.toml
"""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path


def patient(draw: random.Random) -> dict[str, object]:
    """One row: older people, smokers and people with high pressure are ill more often."""
    age = draw.randint(18, 95)
    smoker = draw.random() < 0.25
    pressure = round(draw.gauss(115 + 0.25 * age, 12))
    ill = draw.gauss(0.0, 0.7) < (age - 55) / 20 + 0.9 * smoker + (pressure - 130) / 20
    return {
        "number": draw.randrange(10**9),
        "age": age,
        "smoker": "yes" if smoker else "no",
        "pressure": pressure,
        "outcome": "ill" if ill else "well",
    }


def main() -> None:
    """Write as many rows as are asked for."""
    path, rows = Path(sys.argv[1]), int(sys.argv[2])
    draw = random.Random(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(patient(draw)))
        table.writeheader()
        table.writerows(patient(draw) for _ in range(rows))


if __name__ == "__main__":
    main()

"""A run's public files, written by hand."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from discreet.training.folder import RunFolder
from discreet.training.progress import Mark


def make_run(
    path: Path,
    *,
    data: str = "digits",
    seed: int | None = None,
    accuracy: bool = True,
    marks: int = 20,
) -> RunFolder:
    folder = RunFolder.create(path)
    releases = 100
    plan = {
        "recipe": "dp-sgd",
        "settings": {
            "clip_norm": 1.0,
            "nesterov": False,
            "learning_rate_schedule": {"kind": "cosine", "end": 0.1},
        },
        "budget": {"epsilon": 3.0, "delta": 1e-5},
        "accounting": "visible",
        "sampler": {"kind": "poisson", "examples": 1000, "rate": 0.1},
        "clipping": {"rule": "FlatClipping", "sensitivity": 1.0},
        "noise": {"kind": "gaussian", "multiplier": 1.7320508},
        "optimizer": {"name": "SGD", "settings": {"momentum": 0.9}},
        "releases": releases,
    }
    notes = {"job": {"data": data, "recipe": "dp-sgd", "epsilon": 3.0, "seed": seed}, "evaluation": "public"}
    folder.settings.write_text(json.dumps({"format": 1, "plan": plan, "notes": notes}))
    lines = [
        Mark(
            release=number * releases // marks,
            of=releases,
            epsilon=2.99 * math.sqrt(number / marks),
            budget=3.0,
            noise_multiplier=1.73,
            learning_rate=0.5,
            accuracy=0.9 - 0.7 * math.exp(-number / 5) if accuracy else None,
            seconds=number,
        )
        for number in range(1, marks + 1)
    ]
    folder.metrics.write_text("".join(json.dumps(asdict(mark)) + "\n" for mark in lines))
    certificate = {
        "is_guarantee": seed is None,
        "epsilon": 2.99123456,
        "delta": 1e-5,
        "accounting": "visible",
        "bounds": [{"delta": d, "epsilon": e} for d, e in ((1e-3, 1.9), (1e-5, 2.99123456), (1e-7, 3.8))],
        "compared": {"visible": 2.99123456, "hidden": 2.99123456, "claimed": 3.4},
        "releases": releases,
        "assumptions": ["The number of records is taken as public.", "The key of the noise stays secret."],
        "version": "0.1.0",
    }
    folder.certificate.write_text(json.dumps(certificate))
    return folder


@pytest.fixture(name="make_run")
def make_run_fixture() -> Callable[..., RunFolder]:
    return make_run


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "run")

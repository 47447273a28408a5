"""A run's public files, written by hand."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from discreet.accounting import Accounting, Budget, PoissonGaussian
from discreet.accounting.certificate import TrainedOn
from discreet.accounting.certification import build_certificate
from discreet.accounting.history import ChargePlan, History, LogHeader
from discreet.training.folder import RunFolder
from discreet.training.progress import Mark


def make_run(
    path: Path,
    *,
    data: str = "digits",
    seed: int | None = None,
    accuracy: bool = True,
    marks: int = 20,
    executed: int = 100,
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
            epsilon=2.57 * math.sqrt(number / marks),
            budget=3.0,
            noise_multiplier=1.73,
            learning_rate=0.5,
            accuracy=0.9 - 0.7 * math.exp(-number / 5) if accuracy else None,
            seconds=number,
        )
        for number in range(1, marks + 1)
    ]
    folder.metrics.write_text("".join(json.dumps(asdict(mark)) + "\n" for mark in lines))
    event = PoissonGaussian(sample_rate=0.1, noise_multiplier=1.7320508)
    header = LogHeader(
        budget=Budget(epsilon=3.0, delta=1e-5),
        accounting=Accounting.VISIBLE,
        secure_noise=seed is None,
        plan=ChargePlan(releases=((event, releases),)),
    )
    certificate = build_certificate(
        History(header=header, releases=((event, releases),)),
        recipe="dp-sgd",
        settings=plan["settings"],
        trained_on=TrainedOn(name=data, records=1000, records_public=True),
        sampler="Poisson, afresh for every release.",
        noise_source="AES-256 in counter mode.",
        executed=executed,
        claimed_epsilon=3.4,
        charges_hidden=((event, releases),),
    )
    certificate.save(path)
    return folder


@pytest.fixture(name="make_run")
def make_run_fixture() -> Callable[..., RunFolder]:
    return make_run


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "run")

"""`discreet train`: what it reads, what it writes, what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Discreet = Callable[..., Any]
QUICK = "--output out --releases 4 --expected-batch-size 20"
WRITTEN = {
    "run.json",
    "events.jsonl",
    "metrics.jsonl",
    "tensorboard",
    "model.safetensors",
    "certificate.json",
    "certificate.html",
    "report.html",
    "private",
}


def certificate() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("out/certificate.json").read_text())
    return found


def test_a_named_data_set(discreet: Discreet) -> None:
    answer = discreet("train digits --epsilon 3 --epochs 10 --learning-rate 0.25 --output out")
    assert answer.code == 0, answer.err
    assert answer.err == ""
    assert {each.name for each in Path("out").iterdir()} == WRITTEN
    assert 2.97 < certificate()["epsilon"] <= 3
    last = json.loads(Path("out/metrics.jsonl").read_text().splitlines()[-1])
    assert last["accuracy"] > 0.8
    assert "releases. Certified: epsilon 2.9" in answer.out
    assert [line for line in answer.out.splitlines() if len(line) > 80] == []
    assert discreet("certificate out").code == 0


def test_progress_says_how_far_how_much_is_spent_how_good_and_how_long(discreet: Discreet) -> None:
    answer = discreet(f"train digits {QUICK}")
    marks = [line for line in answer.out.splitlines() if line.startswith("release ")]
    assert len(marks) == 4
    for number, line in enumerate(marks, start=1):
        assert line.startswith(f"release {number}/4  epsilon ")
        assert " of 3  accuracy " in line
        assert line.endswith(" s left")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_with_a_public_schema(discreet: Discreet, patients: Callable[..., str], kind: str) -> None:
    words = patients()
    if kind == "parquet":
        from pyarrow import csv, parquet

        parquet.write_table(csv.read_csv("patients.csv"), "patients.parquet")
        words = words.replace("patients.csv", "patients.parquet")
    answer = discreet(words)
    assert answer.code == 0, answer.err
    assert "120, 2 classes; no accuracy is shown" in answer.out
    assert "not declared" not in answer.out
    marks = [json.loads(line) for line in Path("out/metrics.jsonl").read_text().splitlines()]
    assert {mark["accuracy"] for mark in marks} == {None}


def test_accuracy_is_shown_on_declared_records_only(discreet: Discreet, patients: Callable[..., str]) -> None:
    words = patients()
    answer = discreet(*words.split(), "--public", "patients.csv", "--declared", "non-private holdout")
    assert "accuracy on 120 others (non-private holdout)" in answer.out
    assert answer.out.count("accuracy") == 1 + 3
    assert discreet(f"{words} --no-evaluation --output more").out.count("accuracy") == 1


def test_arrays_whose_classes_are_not_declared_say_so(discreet: Discreet, arrays: Callable[..., str]) -> None:
    answer = discreet(arrays())
    assert answer.code == 0, answer.err
    assert "not declared    the number of classes is the greatest label + 1: read off" in answer.out
    assert any("greatest label + 1" in each for each in certificate()["assumptions"])


@pytest.mark.parametrize("classes", ["2", "low,high", "7"])
def test_declared_classes_are_not_read_off(
    discreet: Discreet, arrays: Callable[..., str], classes: str
) -> None:
    answer = discreet(f"{arrays()} --classes {classes}")
    assert answer.code == 0, answer.err
    assert "not declared" not in answer.out
    assert not any("without noise" in each for each in certificate()["assumptions"])
    outputs = 7 if classes == "7" else 2
    assert f"120, {outputs} classes" in answer.out


def test_arrays_under_other_names(discreet: Discreet, arrays: Callable[..., str]) -> None:
    held = np.load((arrays(), "a.npz")[1])
    words = arrays(inputs=None, targets=None, x=held["inputs"], y=held["targets"])
    assert discreet(f"{words} --inputs x --target y --classes 2").code == 0


def test_an_image_folder_with_declared_classes_and_channels(discreet: Discreet) -> None:
    image = pytest.importorskip("PIL.Image")
    for kind, value in (("cat", 0), ("dog", 255)):
        Path("pictures", kind).mkdir(parents=True)
        for number in range(12):
            image.new("L", (9, 7), value).save(f"pictures/{kind}/{number}.png")
    answer = discreet(f"train pictures {QUICK} --classes dog,cat --channels 1 --image-size 8 --model mlp")
    assert answer.code == 0, answer.err
    assert "not declared" not in answer.out
    spec = json.loads(Path("out/run.json").read_text())["notes"]["model"]
    assert (spec["input_shape"], spec["classes"]) == ([1, 8, 8], 2)
    undeclared = discreet(f"train pictures {QUICK} --output more --image-size 8 --model mlp")
    assert "not declared    the names of the classes are those of the folders" in undeclared.out


def test_features_are_computed_once_and_the_run_goes_on_with_them(
    discreet: Discreet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    images = np.random.default_rng(0).integers(0, 256, (120, 8, 8), dtype=np.uint8)
    np.savez("a.npz", inputs=images, targets=np.arange(120) % 2)
    words = f"train a.npz {QUICK} --classes 2 --features scattering --feature-option groups=9"
    answer = discreet(f"{words} --size-is-public")
    assert answer.code == 0, answer.err
    assert "features        scattering, 81 x 2 x 2: a public function of each record" in answer.out
    assert "model           cnn-scatter" in answer.out
    assert len(list(Path("cache/discreet/features").iterdir())) == 1
    job = json.loads(Path("out/run.json").read_text())["notes"]["job"]
    assert (job["features"], job["feature_options"]) == ("scattering", {"groups": 9})
    again = discreet(f"{words} --output more --model linear --no-feature-cache")
    assert "model           linear, 650 parameters" in again.out, again.err


def test_a_toml_file_has_the_same_names_and_the_command_line_goes_before_it(
    discreet: Discreet, arrays: Callable[..., str]
) -> None:
    arrays()
    Path("job.toml").write_text(
        'data = "a.npz"\nreleases = 3\nexpected-batch-size = 20\nmomentum = 0.5\nclasses = ["low", "high"]\n'
        'output = "out"\nepsilon = 2\nlearning_rate_schedule = "linear:end=0.1"\ntensorboard = false\n'
        'model = "mlp"\nmodel_options = { width = 7 }\n'
    )
    assert discreet("train --config job.toml --epsilon 1 --model-option depth=2").code == 0
    record = json.loads(Path("out/run.json").read_text())
    settings = record["plan"]["settings"]
    assert record["plan"]["budget"]["epsilon"] == 1
    assert (settings["momentum"], settings["learning_rate_schedule"]["kind"]) == (0.5, "linear")
    assert record["notes"]["model"]["options"] == {"width": 7, "depth": 2}
    assert not Path("out/tensorboard").exists()
    assert "out exists already" in discreet("train --config job.toml").err


def test_the_default_folder_is_a_new_one_each_time(discreet: Discreet, arrays: Callable[..., str]) -> None:
    words = arrays().replace("--output out ", "")
    for _ in range(2):
        assert discreet(f"{words} --quiet").code == 0
    assert sorted(each.name for each in Path("runs").iterdir()) == ["a-1", "a-2"]
    assert discreet(f"{words} --quiet").out == "runs/a-3\n"


def test_a_dry_run_tells_the_plan_and_writes_nothing(discreet: Discreet, arrays: Callable[..., str]) -> None:
    answer = discreet(f"{arrays()} --dry-run")
    assert answer.code == 0
    for told in ("releases", "noise", "expected time", "visible", "hidden", "claimed"):
        assert told in answer.out
    assert not Path("out").exists()
    assert not Path("runs").exists()


def test_a_dry_run_refuses_what_the_run_would_refuse(discreet: Discreet, arrays: Callable[..., str]) -> None:
    words = f"{arrays()} --set momentum=-1"
    assert discreet(f"{words} --dry-run").err == discreet(words).err != ""


def test_texts_give_their_vocabulary_to_the_network(discreet: Discreet) -> None:
    from discreet.data import Records, Splits
    from discreet.jobs.job import Job

    tokens = np.random.default_rng(0).integers(0, 50, (9, 4))
    train = Records.from_arrays(tokens, np.arange(9) % 2, classes=2, vocabulary=50)
    spec = Job(data="texts", model="bow-imdb").network(Splits(train=train))
    assert spec.build().embedding.num_embeddings == 50
    assert (
        dict(Job(data="texts", model="lstm-imdb").network(Splits(train=train)).options).get("vocabulary")
        == 50
    )


MARK = {"release", "of", "epsilon", "budget", "noise_multiplier", "learning_rate", "accuracy", "seconds"}


def test_the_logs_hold_public_quantities_and_no_others(discreet: Discreet) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    discreet(f"train digits {QUICK}")
    for line in Path("out/metrics.jsonl").read_text().splitlines():
        mark = json.loads(line)
        assert mark.pop("told") == {}  # a run without a gate has nothing further to tell
        assert mark.keys() == MARK
    events = accumulator.EventAccumulator("out/tensorboard")
    events.Reload()
    assert set(events.Tags()["scalars"]) == MARK - {"release", "of", "seconds"}
    assert not any(events.Tags()[kind] for kind in ("images", "histograms", "tensors", "graph", "audio"))
    for line in Path("out/events.jsonl").read_text().splitlines()[1:]:
        record = json.loads(line)["record"]
        assert record.keys() == {"first", "count", "event"}
        assert record["event"].keys() == {"kind", "noise_multiplier", "sample_rate"}


LOAD = """
import sys, json
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from sklearn.datasets import load_digits
weights = load_file("out/model.safetensors")
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 128), torch.nn.Tanh(), torch.nn.Linear(128, 10))
by_shape = {tuple(value.shape): value for value in weights.values()}
model.load_state_dict({name: by_shape[tuple(value.shape)] for name, value in model.state_dict().items()})
pixels, labels = load_digits(return_X_y=True)
held_out = slice(4, None, 5)
inputs = torch.as_tensor(pixels[held_out], dtype=torch.float32) / 8 - 1
right = (model(inputs).argmax(1) == torch.as_tensor(labels[held_out])).sum().item()
assert not any(name.split(".")[0] == "discreet" for name in sys.modules)
print(right / len(inputs))
"""


def test_the_released_model_needs_safetensors_only(discreet: Discreet) -> None:
    discreet("train digits --epochs 8 --learning-rate 0.25 --output out --model mlp")
    told = json.loads(Path("out/metrics.jsonl").read_text().splitlines()[-1])["accuracy"]
    loaded = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=False)
    assert loaded.returncode == 0, loaded.stderr
    assert float(loaded.stdout) == pytest.approx(told, abs=0.004)


def test_a_seeded_run_says_that_it_is_no_guarantee(discreet: Discreet, arrays: Callable[..., str]) -> None:
    answer = discreet(f"{arrays()} --seed 1")
    assert "NO guarantee" in answer.out
    assert certificate()["guarantee"] is False
    assert "NO GUARANTEE" in discreet("certificate out").out


def test_a_seeded_plan_says_beside_its_epsilon_that_it_is_no_guarantee(discreet: Discreet) -> None:
    words = "train digits --epochs 1 --dry-run"
    assert "NO GUARANTEE" in discreet(f"{words} --seed 1").out
    assert "NO GUARANTEE" not in discreet(words).out

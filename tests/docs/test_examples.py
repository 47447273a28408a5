"""The examples of the documentation do what is said of them."""

import random
import re
from pathlib import Path

import pytest

from discreet.cli.main import main

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    """The blocks of one language, in their order."""
    return re.findall(
        rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL
    )


def run_all(page: str) -> None:
    """Run a page's Python as one program, as somebody would who types it in."""
    known: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec"), known)


def test_the_readmes_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_all("README.md")
    assert (tmp_path / "runs" / "first" / "certificate.html").is_file()
    assert (tmp_path / "runs" / "second" / "model.safetensors").is_file()


def test_the_guides_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "digits", "--epochs", "2", "--quiet", "--output", "runs/digits-1"]) == 0
    run_all("docs/guide.md")
    assert (tmp_path / "runs" / "own-loop" / "report.html").is_file()


def test_the_readmes_table_is_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    rows = [
        f"{draw.randint(18, 95)},{draw.choice(['no', 'yes'])},{draw.randint(90, 180)},{draw.choice(['ill', 'well'])}"
        for _ in range(400)
    ]
    Path("patients.csv").write_text("\n".join(["age,smoker,pressure,outcome", *rows]) + "\n")
    assert main(["data", "schema", "patients.csv", "--target", "outcome", "--output", "template.toml"]) == 0
    assert main(["train", "patients.csv", "--schema", "template.toml", "--epochs", "1"]) == 2
    (schema,) = blocks("README.md", "toml")
    Path("patients.toml").write_text(schema)
    (settings,) = blocks("docs/guide.md", "toml")
    Path("patients.run.toml").write_text(settings)
    assert main(["train", "--config", "patients.run.toml", "--epochs", "1", "--quiet"]) == 0
    assert Path("runs/patients-1/report.html").is_file()

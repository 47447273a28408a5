"""The commands that make a run again, and that check its certificate."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from discreet.jobs.job import Job


def verify(folder: Path) -> str:
    """The command that recomputes the certificate."""
    return f"discreet certificate {shlex.quote(str(folder))}"


def repeat(notes: Mapping[str, Any]) -> str | None:
    """The command that trains with the same settings; None where the run was not started by a command."""
    job = notes.get("job")
    if not isinstance(job, Mapping) or "data" not in job:
        return None
    words = ["discreet", "train", str(job["data"])]
    for field in fields(Job):
        if field.name not in job or field.name == "data":
            continue
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if job[field.name] != default:
            words += _option(field.name, job[field.name])
    return shlex.join(words)


def _option(name: str, value: Any) -> list[str]:
    if name == "settings":
        return [
            word
            for key, each in value.items()
            if each is not None
            for word in ("--set", f"{key}={_written(each)}")
        ]
    if name in ("feature_options", "model_options"):
        option = "--" + name.removesuffix("s").replace("_", "-")
        return [word for key, each in value.items() for word in (option, f"{key}={_written(each)}")]
    if name in ("evaluation", "feature_cache", "tensorboard"):
        return ["--no-" + name.replace("_", "-")]
    option = "--" + name.replace("_", "-")
    return [option] if value is True else [option, _written(value)]


def _written(value: Any) -> str:
    if isinstance(value, Mapping) and "kind" in value:
        return f"{value['kind']}:" + ",".join(f"{key}={each}" for key, each in value.items() if key != "kind")
    return str(value)

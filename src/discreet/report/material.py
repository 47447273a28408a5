"""What a page is made of: the public files of a run's folder, read into plain values."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from discreet.errors import CorruptFile
from discreet.training.files import read_json
from discreet.training.progress import Mark


class Files(Protocol):
    """Where the files of a run lie; a `RunFolder` is one."""

    @property
    def path(self) -> Path:
        """The folder."""
        ...

    @property
    def settings(self) -> Path:
        """The plan and the notes."""
        ...

    @property
    def metrics(self) -> Path:
        """The marks."""
        ...

    @property
    def certificate(self) -> Path:
        """What is guaranteed."""
        ...


@dataclass(frozen=True, kw_only=True)
class Bound:
    """An epsilon and the delta that it holds at."""

    epsilon: float
    delta: float


@dataclass(frozen=True, kw_only=True)
class Certified:
    """What the page says of a certificate.

    Attributes:
        is_guarantee: whether the noise came from a secret key.
        bound: the epsilon at the budget's delta, by the accounting that the run was stopped by.
        bounds: that epsilon at several deltas.
        accounting: "visible" or "hidden".
        compared: what each accounting says at the budget's delta, None where it does not apply.
        releases: how many releases were charged.
        assumptions: what the guarantee rests on, in sentences.
        version: of the library.
    """

    is_guarantee: bool
    bound: Bound
    bounds: tuple[Bound, ...]
    accounting: str
    compared: Mapping[str, float | None]
    releases: int
    assumptions: tuple[str, ...]
    version: str


@dataclass(frozen=True, kw_only=True)
class Material:
    """All that a page about a run is made of."""

    folder: Path
    plan: Mapping[str, Any]
    notes: Mapping[str, Any]
    marks: tuple[Mark, ...]
    certified: Certified

    @property
    def data_name(self) -> str:
        """What the data set is called."""
        job = self.notes.get("job") or {}
        return Path(str(job.get("data", "a model"))).name

    @property
    def evaluated_on(self) -> str:
        """Which records accuracy was taken on, as the end of a sentence."""
        told = {"public": "on public records", "non-private holdout": "on records whose privacy was given up"}
        return told.get(str(self.notes.get("evaluation")), "on records declared not to be private")

    @classmethod
    def of(cls, files: Files) -> Material:
        """Read the files; nothing below the run's private folder is opened."""
        run = read_json(files.settings)
        try:
            return cls(
                folder=files.path,
                plan=run["plan"],
                notes=run["notes"],
                marks=read_marks(files.metrics),
                certified=read_certificate(read_json(files.certificate)),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise CorruptFile(
                f"{files.path}: its files lack {error}; they are not those of a finished run"
            ) from None


def read_marks(path: Path) -> tuple[Mark, ...]:
    """The marks of a run in their order; where a resumed run repeated one, the later line holds."""
    if not path.is_file():
        return ()
    known = {field.name for field in fields(Mark)}
    marks: dict[int, Mark] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            record = {name: value for name, value in json.loads(line).items() if name in known}
            mark = Mark(**record)
        except (ValueError, TypeError, AttributeError):
            raise CorruptFile(f"{path} line {number} is not a mark of a run") from None
        if math.isfinite(mark.epsilon):
            marks[mark.release] = mark
    return tuple(marks[release] for release in sorted(marks))


def read_certificate(record: Mapping[str, Any]) -> Certified:
    """What the page says of a certificate, from its JSON form."""
    delta = float(record["delta"])
    bounds = tuple(
        Bound(epsilon=float(each["epsilon"]), delta=float(each["delta"])) for each in record["bounds"]
    )
    return Certified(
        is_guarantee=bool(record["is_guarantee"]),
        bound=Bound(epsilon=float(record["epsilon"]), delta=delta),
        bounds=bounds,
        accounting=str(record["accounting"]),
        compared=dict(record["compared"]),
        releases=int(record["releases"]),
        assumptions=tuple(record["assumptions"]),
        version=str(record["version"]),
    )

"""What a page is made of: the public files of a run's folder, read into plain values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from discreet.accounting import epsilon
from discreet.accounting.certificate import Certificate
from discreet.accounting.events import event_from_json
from discreet.errors import CorruptFile
from discreet.training.files import read_json
from discreet.training.progress import Mark

_LARGER_DELTAS = (0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 1e-4)


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
class Material:
    """All that a page about a run is made of."""

    folder: Path
    plan: Mapping[str, Any]
    notes: Mapping[str, Any]
    marks: tuple[Mark, ...]
    certificate: Certificate

    @classmethod
    def of(cls, files: Files) -> Material:
        """Read the files; nothing below the run's private folder is opened."""
        run = read_json(files.settings)
        try:
            plan, notes = run["plan"], run["notes"]
        except (KeyError, TypeError):
            raise CorruptFile(f"{files.settings} lacks the plan or the notes of a run") from None
        return cls(
            folder=files.path,
            plan=plan,
            notes=notes,
            marks=read_marks(files.metrics),
            certificate=read_certificate(files.certificate),
        )

    @property
    def title(self) -> str:
        """What was trained on what."""
        return f"{self.certificate.trained_on.name}, trained with {self.certificate.recipe}"

    @property
    def evaluated_on(self) -> str:
        """Which records accuracy was taken on, as the end of a sentence."""
        told = {"public": "on public records", "non-private holdout": "on records whose privacy was given up"}
        return told.get(str(self.notes.get("evaluation")), "on records declared not to be private")

    @property
    def bound(self) -> Bound:
        """What is guaranteed at the budget's delta."""
        stated = self.certificate.epsilon
        return Bound(epsilon=math.inf if stated is None else stated, delta=self.certificate.budget_delta)

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """All bounds of the certificate, and further ones from the charges in it; they hold together."""
        return tuple(sorted(set(self._bounds()), key=lambda each: each.delta))

    def _bounds(self) -> Iterator[Bound]:
        for each in self.certificate.epsilons:
            if each.epsilon is not None:
                yield Bound(epsilon=each.epsilon, delta=each.delta)
        if self.certificate.filter == "planned":
            charges = [(event_from_json(each["event"]), each["count"]) for each in self.certificate.planned]
            for delta in _LARGER_DELTAS:
                found = epsilon(charges, delta, accounting=self.certificate.accounting)
                if math.isfinite(found):
                    yield Bound(epsilon=found, delta=delta)


def read_certificate(path: Path) -> Certificate:
    """The certificate in a run's folder."""
    try:
        return Certificate.from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorruptFile(f"{path} is missing; {path.parent} is not the folder of a finished run") from None


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

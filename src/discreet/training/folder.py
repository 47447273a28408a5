"""The folder of a run: what lies where, and what of it may be given away."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import UserError


@dataclass(frozen=True)
class RunFolder:
    """Paths of one run.

    Everything outside `private` is made from released values and public settings only. `private` holds the key that
    the noise was drawn with and the state to resume from; whoever has the key can take the noise off again.
    """

    path: Path

    @property
    def settings(self) -> Path:
        """What was asked for and planned."""
        return self.path / "run.json"

    @property
    def events(self) -> Path:
        """Every charge, in the order in which it was made."""
        return self.path / "events.jsonl"

    @property
    def metrics(self) -> Path:
        """Progress, one JSON object per line."""
        return self.path / "metrics.jsonl"

    @property
    def tensorboard(self) -> Path:
        """Progress for TensorBoard."""
        return self.path / "tensorboard"

    @property
    def model(self) -> Path:
        """The released weights."""
        return self.path / "model.safetensors"

    @property
    def certificate(self) -> Path:
        """What is guaranteed, for programs."""
        return self.path / "certificate.json"

    @property
    def certificate_page(self) -> Path:
        """What is guaranteed, for people."""
        return self.path / "certificate.html"

    @property
    def report(self) -> Path:
        """The page about the run."""
        return self.path / "report.html"

    @property
    def private(self) -> Path:
        """What must not leave the machine."""
        return self.path / "private"

    @property
    def key(self) -> Path:
        """The secret of the run's randomness; deleted when the run ends."""
        return self.private / "run.key"

    @property
    def checkpoint(self) -> Path:
        """The state to resume from."""
        return self.private / "checkpoint.safetensors"

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """A new folder; one that exists is refused."""
        if path.exists():
            raise UserError(
                f"{path} exists already; choose another output folder, or resume it if it is a run"
            )
        try:
            path.mkdir(parents=True)
            folder = cls(path)
            folder.private.mkdir(mode=0o700)
        except NotADirectoryError:
            raise UserError(f"{path} cannot be made: a part of that path is a file") from None
        except PermissionError:
            raise UserError(f"{path} cannot be made: no permission to write there") from None
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The folder of an earlier run."""
        folder = cls(path)
        if not folder.settings.is_file():
            raise UserError(f"{path} is not the folder of a run: it has no {folder.settings.name}")
        return folder

    def discard(self) -> None:
        """Remove a folder that was created for a run which then could not begin."""
        shutil.rmtree(self.path, ignore_errors=True)

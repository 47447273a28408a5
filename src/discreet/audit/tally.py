"""What an audit has seen so far, kept beside the checkpoint of the run that it watches."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors.torch import load_file, save_file
from torch import Tensor

from discreet.training.folder import RunFolder

if TYPE_CHECKING:
    from discreet.training.run import Run

_SECONDS = 30.0
"""At least so much time lies between two savings."""


@dataclass
class Tally:
    """The scores after so many releases, on disk now and then, together with the run.

    The scores are written first, under the number of releases that they are of. A checkpoint without its scores, or
    none at all, means that there is nothing to go on with.

    Attributes:
        folder: the run's; None for a run that lives in memory.
    """

    folder: Path | None
    _last: float = field(default_factory=time.monotonic)

    @property
    def begun(self) -> bool:
        """Whether there is something to go on with; what is left of an attempt without is removed."""
        if self.folder is None:
            return False
        if self._files() and RunFolder(self.folder).checkpoint.is_file():
            return True
        self.clear()
        return False

    def found(self, releases: int) -> Tensor | None:
        """The scores after that many releases; None where they were not kept."""
        path = self._path(releases)
        if path is None or not path.is_file():
            return None
        return load_file(path)["scores"]

    def save(self, run: Run, scores: Tensor, *, now: bool = False) -> None:
        """Write scores and run, if it is time."""
        path = self._path(run.state.releases)
        if path is None or not (now or time.monotonic() - self._last >= _SECONDS):
            return
        older = self._files()
        save_file({"scores": scores}, path)
        run.save()
        for each in older:
            if each != path:
                each.unlink()
        self._last = time.monotonic()

    def clear(self) -> None:
        """Remove the run: its audit is done, or it cannot be gone on with."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _files(self) -> list[Path]:
        return [] if self.folder is None else sorted(self.folder.glob("scores-*.safetensors"))

    def _path(self, releases: int) -> Path | None:
        return None if self.folder is None else self.folder / f"scores-{releases}.safetensors"

"""Where data sets lie on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from discreet.errors import UserError

VARIABLE = "DISCREET_DATA"


def cache_folder() -> Path:
    """The folder that downloads go to: $XDG_CACHE_HOME/discreet, or ~/.cache/discreet."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "discreet"


def roots(folder: Path | None = None) -> tuple[Path, ...]:
    """Folders that may hold data sets, best first: the one given, $DISCREET_DATA, the cache folder."""
    given = (folder,) if folder is not None else ()
    declared = os.environ.get(VARIABLE)
    return (*given, *((Path(declared),) if declared else ()), cache_folder())


def find_file(folder: Path, stem: str) -> Path:
    """The file called `stem`, plain or with .gz, in `folder`."""
    found = maybe_file(folder, stem)
    if found is None:
        raise UserError(f"{folder} has neither {stem} nor {stem}.gz")
    return found


def maybe_file(folder: Path, stem: str) -> Path | None:
    """As `find_file`, or None where there is no such file or folder."""
    return next((path for path in (folder / stem, folder / f"{stem}.gz") if path.exists()), None)

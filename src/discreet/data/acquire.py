"""Named data sets brought to this machine, from where they were first published."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from discreet.data import named
from discreet.data.archives import unpack
from discreet.data.download import Progress, Remote, fetch
from discreet.data.folders import VARIABLE, cache_folder
from discreet.data.sources import SOURCES
from discreet.errors import UserError


def get(
    name: str,
    folder: Path | None = None,
    *,
    progress: Progress | None = None,
    sources: Mapping[str, tuple[Remote, ...]] = SOURCES,
) -> Path:
    """The folder that holds the data set, downloaded unless it is on this machine already.

    Args:
        name: One of `names()`.
        folder: The root to put it below; left out, $DISCREET_DATA, or the cache folder.
        progress: Told of every piece that has come.
        sources: The addresses; others than the published ones for a mirror.

    Raises:
        UserError: Unknown name, nothing to download, or a download that failed and why.
    """
    wanted = named.entry(name)
    if name not in sources:
        raise UserError(f"{name} needs no download: {wanted.summary}")
    found = wanted.find(folder)
    if found is not None:
        return found
    place = (folder or Path(os.environ.get(VARIABLE) or cache_folder())) / name
    for remote in sources[name]:
        file = fetch(remote, place, progress=progress)
        if remote.unpack:
            unpack(file, place, wanted=remote.unpack)
            file.unlink()
    return place

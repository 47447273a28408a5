"""Named data sets brought to this machine, from where they were first published."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
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
    mirror: str | None = None,
    sources: Mapping[str, tuple[Remote, ...]] = SOURCES,
) -> Path:
    """The folder that holds the data set, downloaded unless it is on this machine already.

    Args:
        name: One of `names()`.
        folder: The root to put it below; left out, $DISCREET_DATA, or the cache folder.
        progress: Told of every piece that has come.
        mirror: Where to ask instead of the published addresses: MIRROR/NAME/FILENAME. What it gives has to have
            the published checksums all the same.
        sources: The addresses.

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
    for published in sources[name]:
        remote = published if mirror is None else _mirrored(published, name, mirror)
        file = fetch(remote, place, progress=progress)
        if remote.unpack:
            unpack(file, place, wanted=remote.unpack)
            file.unlink()
    return place


def _mirrored(remote: Remote, name: str, mirror: str) -> Remote:
    if not mirror.startswith(("http://", "https://")):
        raise UserError(f"mirror is {mirror!r}; an address begins with http:// or https://")
    return replace(remote, addresses=(f"{mirror.rstrip('/')}/{name}/{remote.filename}",))

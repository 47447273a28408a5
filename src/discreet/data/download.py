"""Files from public addresses: resumed, retried, checked, and put in place in one move."""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import UserError

Progress = Callable[[str, int, int], None]
"""Told the file's name, the bytes that are there and the bytes in all, again and again."""

PIECE = 1 << 18
TIMEOUT = 30.0
GONE = (401, 403, 404, 410)
RANGE_NOT_SATISFIABLE = 416
PARTIAL_CONTENT = 206


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A file that somebody publishes.

    Attributes:
        filename: What it is called here.
        addresses: Where it lies, best first; http or https.
        size: Its bytes.
        checksum: "md5:..." or "sha256:...", as its publisher quotes it.
        unpack: For a tar archive, the folders in it that are wanted; empty keeps the file as it is.
    """

    filename: str
    addresses: tuple[str, ...]
    size: int
    checksum: str
    unpack: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if Path(self.filename).name != self.filename:
            raise ValueError(f"filename is {self.filename!r}; it must be a bare name")
        if not self.addresses or not all(each.startswith(("http://", "https://")) for each in self.addresses):
            raise ValueError(f"addresses is {self.addresses}; every one must begin with http:// or https://")
        if self.checksum.partition(":")[0] not in ("md5", "sha256"):
            raise ValueError(f"checksum is {self.checksum!r}; it must begin with md5: or sha256:")


class _Interrupted(Exception):
    """The transfer stopped short; what has come so far is kept and the rest asked for again."""


class _Unavailable(Exception):
    """This address will not give the file, however often it is asked."""


def fetch(
    remote: Remote,
    folder: Path,
    *,
    progress: Progress | None = None,
    attempts: int = 5,
    pause: float = 1.0,
) -> Path:
    """The file in `folder`, downloaded unless it is there already and right.

    A transfer that breaks off goes on where it stopped, in this call after `pause` seconds, doubled each time
    that nothing came, or in a later one. Only a file with the right checksum gets its name.

    Args:
        remote: What to fetch.
        folder: Where to put it.
        progress: Told of every piece.
        attempts: How often in a row an address may give nothing before the next one is tried.
        pause: Seconds before the second attempt.

    Raises:
        UserError: No address has the file, it is not what was published, or the disk is full.
    """
    target, part = folder / remote.filename, folder / f"{remote.filename}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if target.is_file() and _is_right(target, remote):
            return target
        _transfer(remote, part, progress, attempts, pause)
        if not _is_right(part, remote):
            # What was resumed may stem from another edition of the file: once more from the start.
            part.unlink()
            _transfer(remote, part, progress, attempts, pause)
        if not _is_right(part, remote):
            part.unlink()
            raise UserError(
                f"{remote.filename} from {remote.addresses[0]} is not the file that was published: "
                f"its checksum is not {remote.checksum}"
            )
        part.replace(target)
    except OSError as error:
        raise _explained(error, folder, remote) from error
    return target


def _transfer(remote: Remote, part: Path, progress: Progress | None, attempts: int, pause: float) -> None:
    """Brings `part` to full size from the first address that will."""
    refusals = []
    for address in remote.addresses:
        try:
            _persist(address, remote, part, progress, attempts, pause)
        except _Unavailable as refusal:
            refusals.append(f"{address}: {refusal}")
        else:
            return
    raise UserError(f"{remote.filename} could not be downloaded; " + "; ".join(refusals))


def _persist(
    address: str, remote: Remote, part: Path, progress: Progress | None, attempts: int, pause: float
) -> None:
    failures = 0
    while True:
        before = _size(part)
        try:
            return _once(address, remote, part, progress)
        except _Interrupted as interruption:
            failures = 1 if _size(part) > before else failures + 1
            if failures == attempts:
                raise _Unavailable(f"{interruption} ({attempts} attempts)") from interruption
            time.sleep(pause * 2 ** (failures - 1))


def _once(address: str, remote: Remote, part: Path, progress: Progress | None) -> None:
    """One request for what is missing of `part`."""
    there = _size(part)
    if there == remote.size:
        return
    if there > remote.size:
        part.unlink()
        there = 0
    request = urllib.request.Request(
        address, headers={"User-Agent": "discreet", "Accept-Encoding": "identity"}
    )
    if there:
        request.add_header("Range", f"bytes={there}-")
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == RANGE_NOT_SATISFIABLE:
            part.unlink()
            raise _Interrupted("the server could not resume") from error
        if error.code in GONE:
            raise _Unavailable(f"the server answers {error.code} {error.reason}") from error
        raise _Interrupted(f"the server answers {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _Interrupted(f"no connection ({getattr(error, 'reason', error)})") from error
    with response:
        resumed = there > 0 and response.status == PARTIAL_CONTENT
        if resumed and not str(response.headers.get("Content-Range", "")).startswith(f"bytes {there}-"):
            part.unlink()
            raise _Interrupted("the server resumed at another place")
        _append(response, part, there if resumed else 0, remote, progress)


def _append(
    response: http.client.HTTPResponse, part: Path, there: int, remote: Remote, progress: Progress | None
) -> None:
    with part.open("ab" if there else "wb") as file:
        while there < remote.size:
            try:
                piece = response.read(min(PIECE, remote.size - there))
            except (OSError, http.client.HTTPException) as error:
                raise _Interrupted("the transfer broke off") from error
            if not piece:
                raise _Interrupted(f"the transfer ended after {there:,} of {remote.size:,} bytes")
            file.write(piece)
            there += len(piece)
            if progress is not None:
                progress(remote.filename, there, remote.size)
        file.flush()
        os.fsync(file.fileno())


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _is_right(path: Path, remote: Remote) -> bool:
    kind, _, expected = remote.checksum.partition(":")
    digest = hashlib.new(kind, usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest() == expected


def _explained(error: OSError, folder: Path, remote: Remote) -> UserError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UserError(
            f"the disk that holds {folder} is full; {remote.filename} has {remote.size:,} bytes. "
            "Make room and ask again: the download goes on where it stopped"
        )
    return UserError(f"{remote.filename} cannot be written to {folder}: {error.strerror or error}")

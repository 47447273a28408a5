"""Tar archives, unpacked without trusting them."""

from __future__ import annotations

import errno
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from discreet.errors import CorruptFile, UserError

PIECE = 1 << 18


def unpack(archive: Path, folder: Path, *, wanted: Iterable[str]) -> None:
    """Puts the wanted folders and files of a tar archive into `folder`, all of them or none.

    Only plain files are taken, and only below `folder`: an archive with an absolute path, a path that climbs
    out, or a link or device among the wanted members is refused.

    Args:
        archive: A .tar, .tar.gz, .tar.bz2 or .tar.xz file.
        folder: Where its top folders are to stand; none of them may be there yet.
        wanted: Paths in the archive; what does not lie below one of them is passed over.
    """
    chosen = tuple(PurePosixPath(each) for each in wanted)
    staging = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=folder))
    try:
        _extract(archive, staging, chosen)
        for top in sorted(staging.iterdir()):
            if (folder / top.name).exists():
                raise UserError(
                    f"{folder / top.name} is in the way and holds no whole copy; remove it and ask again"
                )
            top.replace(folder / top.name)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise CorruptFile(f"{archive} cannot be unpacked ({error}); remove it and get it again") from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise UserError(
                f"the disk that holds {folder} is full; {archive.name} could not be unpacked"
            ) from error
        if error.errno is None:  # gzip and lzma report damage as an OSError without a number
            raise CorruptFile(
                f"{archive} cannot be unpacked ({error}); remove it and get it again"
            ) from error
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _extract(archive: Path, staging: Path, chosen: tuple[PurePosixPath, ...]) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts:
                raise CorruptFile(f"{archive} is not to be trusted: it would write to {member.name!r}")
            if not any(path.is_relative_to(each) for each in chosen) or member.isdir():
                continue
            content = tar.extractfile(member) if member.isreg() else None
            if content is None:
                raise CorruptFile(f"{archive} is not to be trusted: {member.name!r} is not a plain file")
            target = staging.joinpath(*path.parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            with content, target.open("wb") as file:
                shutil.copyfileobj(content, file)
        # Compressed archives carry their checksum behind the last member: read on until it has been compared.
        while tar.fileobj is not None and tar.fileobj.read(PIECE):
            pass

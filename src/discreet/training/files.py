"""Writing files so that a crash leaves either the old one or the new one, whole."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from discreet.errors import CorruptFile


def write_bytes(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a temporary file, make it durable, and put it in the place of `path` in one move."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(descriptor)
    temporary = Path(name)
    try:
        temporary.write_bytes(content)
        temporary.chmod(mode)
        sync(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Make a file's contents, or a folder's entries, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Write a text file atomically."""
    write_bytes(path, text.encode(), mode=mode)


def write_json(path: Path, record: Any) -> None:
    """Write a JSON file atomically; NaN and infinity are refused."""
    write_text(path, json.dumps(record, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorruptFile(f"{path} is missing; {path.parent} is not the folder of a run") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CorruptFile(f"{path} is not valid JSON ({error})") from None

"""Compiles the kernels into the user's cache folder, once for each compiler, processor and version of the sources.

The library takes plain pointers: it knows neither Python nor torch, needs the headers of neither, is built in
seconds and outlives updates of both.
"""

import contextlib
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on this operating system
    fcntl = None  # type: ignore[assignment]

_SOURCES = Path(__file__).parent
_MAIN = "kernels.cpp"
# Strict arithmetic: neither -ffast-math nor anything else that gives up NaN, infinity or the order of sums.
_FLAGS = ("-std=c++17", "-O3", "-march=native", "-fopenmp", "-fPIC", "-fvisibility=hidden", "-Wno-psabi")
_SECONDS = 300


class BuildError(Exception):
    """The kernels cannot be compiled here; says why."""


def built(folder: Path) -> Path:
    """The library for this processor in `folder`, compiled if it is not there yet."""
    compiler = _compiler()
    path = folder / f"{_key(compiler)}.so"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_own(folder)
        if not path.exists():
            with _alone(folder):
                if not path.exists():
                    _compile(compiler, path)
        _require_own(path)
    except OSError as error:
        raise BuildError(f"{error}") from error
    return path


def _compiler() -> list[str]:
    for command in filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++")):
        words = shlex.split(command)
        if words and shutil.which(words[0]):
            return words
    raise BuildError("there is no C++ compiler")


def _key(compiler: list[str]) -> str:
    """A digest of all that the library is made of.

    The compiler's predefined macros tell its version and, with -march=native, what the processor can do: a cache
    folder may be shared by machines that differ.
    """
    digest = hashlib.sha256(_run([*compiler, *_FLAGS, "-dM", "-E", "-x", "c++", os.devnull]))
    digest.update(shlex.join([*compiler, *_FLAGS]).encode())
    for source in sorted(_SOURCES.glob("*.?pp")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def _compile(compiler: list[str], path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        made = Path(scratch) / path.name
        _run([*compiler, *_FLAGS, "-shared", str(_SOURCES / _MAIN), "-o", str(made)])
        made.chmod(0o700)
        # In one move: who looks meanwhile finds nothing or the whole library.
        made.replace(path)


def _run(command: list[str]) -> bytes:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=True)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        raise BuildError(f"{command[0]} fails: {lines[-1] if lines else error}") from error
    except (subprocess.TimeoutExpired, OSError) as error:
        raise BuildError(f"{command[0]} fails: {error}") from error
    return done.stdout


def _require_own(path: Path) -> None:
    """Refuse to run code that somebody else could have put there."""
    if hasattr(os, "getuid"):
        state = path.stat()
        if state.st_uid != os.getuid() or state.st_mode & 0o022:
            raise BuildError(f"{path} can be written by others")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process compile while the others wait for it."""
    if fcntl is None:
        yield
        return
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

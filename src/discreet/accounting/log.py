"""The event log of a run: what was charged, written durably before anything is released.

`events.jsonl` holds a header line (budget, accounting, calculus, filter, plan) and then one line per
charge. A charge is on the disk (flushed and synchronised) before `EventLog.charge` returns, so a crash can
lose a release but never a charge. Each line carries a hash of itself and of all lines before it: an edit, a
lost or a swapped line is noticed. The hash is not secret, so it guards against accidents and casual edits,
not against someone who rewrites the file.

Release numbers make charging idempotent: a resumed run charges the release that it was about to make once
more, and the log answers that this has been paid for, if it was paid for as the very same event.
"""

from __future__ import annotations

import hashlib
import json
import os
from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from discreet.accounting.events import Event, event_from_json
from discreet.accounting.history import History, LogHeader
from discreet.errors import CorruptFile, UserError

try:
    import fcntl
except ImportError:  # without advisory locks, having one writer is the caller's duty
    fcntl = None  # type: ignore[assignment]

LOG_NAME = "events.jsonl"
_FIRST_LINK = "0" * 32


class EventLog:
    """The log of one run, open for charging. Only one process may hold it."""

    def __init__(self, path: Path, descriptor: int, ledger: _Ledger, link: str) -> None:
        self.path = path
        self._descriptor = descriptor
        self._ledger = ledger
        self._link = link

    @classmethod
    def create(cls, folder: Path | str, header: LogHeader) -> EventLog:
        """Begin a log in a run's folder; an existing one is never overwritten."""
        path = Path(folder) / LOG_NAME
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except FileExistsError:
            raise UserError(f"{path} exists already; resume that run or choose another folder") from None
        log = cls(path, _locked(descriptor, path), _Ledger(header), _FIRST_LINK)
        log._append(header.to_json())
        _synchronise_folder(path.parent)
        return log

    @classmethod
    def resume(cls, folder: Path | str) -> EventLog:
        """Open the log of an interrupted run; a last line that was torn by a crash is removed."""
        path = Path(folder) / LOG_NAME
        try:
            descriptor = _locked(os.open(path, os.O_RDWR | os.O_APPEND), path)
        except FileNotFoundError:
            raise UserError(f"{path} does not exist: there is no run to resume in {folder}") from None
        try:
            content = path.read_bytes()
            ledger, link, length = _parsed(content, path)
            if length < len(content):
                os.ftruncate(descriptor, length)
                os.fsync(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor, ledger, link)

    @property
    def charged(self) -> int:
        """The number of releases that have been paid for."""
        return self._ledger.charged

    @property
    def history(self) -> History:
        """The header and everything charged so far."""
        return self._ledger.history()

    def charge(self, release: int, event: Event, count: int = 1) -> None:
        """Charge `count` releases of one event from number `release` on. Durable when it returns.

        Numbers that were charged before cost nothing again, provided that they were charged as the same
        event; this is how a resumed run uses up what it had paid for. Numbers must not be skipped. Charging
        in blocks (`count` > 1) writes one line and synchronises once for all of them.
        """
        if count < 1 or release < 0 or release > self.charged:
            raise ValueError(
                f"the next release to charge is number {self.charged}, not {count} from {release}"
            )
        for earlier in self._ledger.between(release, release + count):
            if earlier != event:
                raise UserError(
                    f"{self.path}: release {release} was charged as {earlier}, and now asked for as {event}. "
                    "Resume a run with the settings that it was started with."
                )
        fresh = release + count - self.charged
        if fresh > 0:
            self._append({"first": self.charged, "count": fresh, "event": event.to_json()})
            self._ledger.add(event, fresh)

    def charge_once(self, name: str, event: Event) -> None:
        """Charge something outside of the numbering, by name; a second time it must be the same."""
        earlier = self._ledger.once.get(name)
        if earlier is None:
            self._append({"name": name, "event": event.to_json()})
            self._ledger.once[name] = event
        elif earlier != event:
            raise UserError(f"{self.path}: {name!r} was charged as {earlier}, and now asked for as {event}")

    def close(self) -> None:
        """Give the log free for another process."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> EventLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, record: Mapping[str, Any]) -> None:
        if self._descriptor < 0:
            raise ValueError(f"{self.path} is closed; resume the run to charge it again")
        link, line = _line(record, self._link)
        try:
            written = os.write(self._descriptor, line)
            if written != len(line):
                raise OSError(
                    f"{self.path}: only {written} of {len(line)} bytes were written; is the disk full?"
                )
            os.fsync(self._descriptor)
        except OSError:
            # What is on the disk is now unknown. Appending after a torn line would corrupt the log for good.
            self.close()
            raise
        self._link = link


def read_log(folder: Path | str) -> History:
    """What the log of a run says, without touching it. A torn last line counts as not written."""
    path = Path(folder) / LOG_NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: {folder} is not the folder of a run") from None
    return _parsed(content, path)[0].history()


class _Ledger:
    """Runs of charged events that can be extended, and looked up by release number, without being copied."""

    def __init__(self, header: LogHeader) -> None:
        self.header = header
        self.once: dict[str, Event] = {}
        self.charged = 0
        self._runs: list[tuple[Event, int]] = []
        self._starts: list[int] = []

    def add(self, event: Event, count: int) -> None:
        if self._runs and self._runs[-1][0] == event:
            self._runs[-1] = (event, self._runs[-1][1] + count)
        else:
            self._runs.append((event, count))
            self._starts.append(self.charged)
        self.charged += count

    def between(self, first: int, stop: int) -> list[Event]:
        """The events charged for the numbers `first` to `stop - 1`, as far as there are any."""
        if first >= self.charged:
            return []
        last = bisect_right(self._starts, stop - 1)
        return [event for event, _ in self._runs[bisect_right(self._starts, first) - 1 : last]]

    def history(self) -> History:
        return History(header=self.header, releases=tuple(self._runs), once=tuple(self.once.items()))


def _line(record: Mapping[str, Any], link: str) -> tuple[str, bytes]:
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    link = hashlib.sha256(f"{link}{text}".encode()).hexdigest()[:32]
    return link, f'{{"record":{text},"chain":"{link}"}}\n'.encode()


def _parsed(content: bytes, path: Path) -> tuple[_Ledger, str, int]:
    """The charges, the last link of the chain, and the length of what is whole.

    A crash while a charge is being written leaves a last line without its end. That charge was never
    acknowledged, so nothing was released for it. Everything else that is not as it was written is refused.
    """
    *lines, torn = content.split(b"\n")
    if not lines:
        raise CorruptFile(
            f"{path} has no complete header: the run stopped before its first charge; remove it"
        )
    link, ledger = _FIRST_LINK, None
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)["record"]
            link, expected = _line(record, link)
            if expected != line + b"\n":
                raise ValueError("it, or a line before it, is not as it was written")
            ledger = _extended(ledger, record)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptFile(f"{path}, line {number} is corrupt: {error}") from error
    assert ledger is not None
    return ledger, link, len(content) - len(torn)


def _extended(ledger: _Ledger | None, record: Mapping[str, Any]) -> _Ledger:
    if ledger is None:
        return _Ledger(LogHeader.from_json(record))
    event = event_from_json(record["event"])
    if "name" in record:
        ledger.once[record["name"]] = event
    elif record["first"] != ledger.charged or record["count"] < 1:
        raise ValueError(f"it charges from release {record['first']}, but the next one was {ledger.charged}")
    else:
        ledger.add(event, record["count"])
    return ledger


def _locked(descriptor: int, path: Path) -> int:
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise UserError(f"{path} is in use by another process; two runs cannot share a folder") from None
    return descriptor


def _synchronise_folder(folder: Path) -> None:
    """Make the new file's name durable too; not every system lets a folder be opened."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

"""`discreet data`: downloads through the command, from a server on this machine."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from discreet.data import download
from discreet.data.download import Remote
from discreet.data.sources import SOURCES

Discreet = Callable[..., Any]
FILES = {"adult.data": b"1, 2, 3\n" * 40_000, "adult.test": b"4, 5, 6\n" * 1_000}


class Mirror:
    """A server that gives /adult/NAME, and what was asked of it."""

    def __init__(self) -> None:
        self.files = {f"/adult/{name}": content for name, content in FILES.items()}
        self.ranges: list[tuple[str, str | None]] = []
        self.break_after: int | None = None
        mirror = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = self.headers.get("Range")
                mirror.ranges.append((self.path, asked))
                content = mirror.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
                self.send_response(206 if asked else 200)
                self.send_header("Content-Length", str(len(content) - start))
                if asked:
                    self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
                self.end_headers()
                stop = len(content) if mirror.break_after is None else start + mirror.break_after
                mirror.break_after = None
                self.wfile.write(content[start:stop])
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Mirror]:
    """A mirror of a small "adult"; nothing else can be reached, and no time is lost waiting."""
    remotes = tuple(
        Remote(
            filename=name,
            addresses=(f"http://127.0.0.1:9/{name}",),
            size=len(content),
            checksum=f"sha256:{hashlib.sha256(content).hexdigest()}",
        )
        for name, content in FILES.items()
    )
    monkeypatch.setitem(SOURCES, "adult", remotes)  # type: ignore[arg-type]
    monkeypatch.setattr(download.time, "sleep", lambda _: None)
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = Mirror()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def test_files_come_whole_with_progress_and_are_found_the_next_time(
    discreet: Discreet, mirror: Mirror
) -> None:
    answer = discreet(f"data get adult --folder here --mirror {mirror.address}")
    assert answer.code == 0, answer.err
    assert answer.out == "adult lies in here/adult\n"
    for name, content in FILES.items():
        assert Path("here/adult", name).read_bytes() == content
        assert name in answer.err
    asked = len(mirror.ranges)
    assert discreet(f"data get adult --folder here --mirror {mirror.address}/").code == 0
    assert len(mirror.ranges) == asked


def test_a_transfer_that_breaks_off_goes_on_where_it_stopped(discreet: Discreet, mirror: Mirror) -> None:
    mirror.break_after = 100_000
    assert discreet(f"data get adult --folder here --mirror {mirror.address}").code == 0
    assert Path("here/adult/adult.data").read_bytes() == FILES["adult.data"]
    ranges = [asked for path, asked in mirror.ranges if path.endswith("adult.data")]
    assert ranges[0] is None
    assert re.fullmatch(r"bytes=[1-9]\d*-", str(ranges[1]))


def test_a_download_that_was_given_up_goes_on_when_it_is_asked_for_again(
    discreet: Discreet, mirror: Mirror
) -> None:
    Path("here/adult").mkdir(parents=True)
    Path("here/adult/adult.data.part").write_bytes(FILES["adult.data"][:77])
    assert discreet(f"data get adult --folder here --mirror {mirror.address}").code == 0
    assert mirror.ranges[0] == ("/adult/adult.data", "bytes=77-")
    assert Path("here/adult/adult.data").read_bytes() == FILES["adult.data"]


def test_another_file_than_the_published_one_is_refused(discreet: Discreet, mirror: Mirror) -> None:
    mirror.files["/adult/adult.data"] = FILES["adult.data"].replace(b"1", b"9")
    answer = discreet(f"data get adult --folder here --mirror {mirror.address}")
    assert answer.code == 2
    assert "is not the file that was published" in answer.err.splitlines()[-1]
    assert list(Path("here/adult").iterdir()) == []


def test_a_file_that_is_not_there_is_said_so_in_one_line(discreet: Discreet, mirror: Mirror) -> None:
    mirror.files.clear()
    answer = discreet(f"data get adult --folder here --mirror {mirror.address}")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "the server answers 404" in answer.err


def test_without_a_connection_one_line_says_so(discreet: Discreet, mirror: Mirror) -> None:
    answer = discreet("data get adult --folder here")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "no connection" in answer.err


def test_a_mirror_that_is_no_address_is_refused(discreet: Discreet, mirror: Mirror) -> None:
    answer = discreet("data get adult --folder here --mirror ftp://example.org")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "begins with http:// or https://" in answer.err


def test_the_list_says_what_is_here(discreet: Discreet, mirror: Mirror) -> None:
    before = {line.split()[0]: line for line in discreet("data list").out.splitlines() if line.strip()}
    assert before["adult"].split()[-1] == "no"
    discreet(f"data get adult --mirror {mirror.address}")
    after = discreet("data list").out
    assert len(before) >= 8
    assert " no" not in next(line for line in after.splitlines() if line.startswith("adult"))


def test_a_template_is_printed_or_written_but_never_over_another(
    discreet: Discreet, patients: Callable[..., str]
) -> None:
    patients()
    printed = discreet("data schema patients.csv --target ill").out
    assert discreet("data schema patients.csv --target ill --output new.toml").code == 0
    assert Path("new.toml").read_text() == printed
    answer = discreet("data schema patients.csv --target ill --output new.toml")
    assert (answer.code, "exists already" in answer.err) == (2, True)

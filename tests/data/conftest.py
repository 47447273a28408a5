"""What several tests of data need: a server that misbehaves on request, and archives."""

import hashlib
import http.server
import io
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from discreet.data.download import Remote

CONTENT = bytes(range(256)) * 4096


@dataclass
class Host:
    """A server for one test: what it serves, how it fails, and what it was asked."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    cut_after: list[int] = field(default_factory=list)
    errors: list[int] = field(default_factory=list)
    ranges: bool = True
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def remote(self, name: str = "file.bin", content: bytes = CONTENT, *paths: str) -> Remote:
        addresses = tuple(f"{self.address}/{path}" for path in (paths or (name,)))
        checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
        return Remote(filename=name, addresses=addresses, size=len(content), checksum=checksum)


@pytest.fixture
def host() -> Iterator[Host]:
    served = Host(files={"file.bin": CONTENT})

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.lstrip("/")
            wanted = self.headers.get("Range")
            served.asked.append((path, wanted))
            if served.errors:
                return self.send_error(served.errors.pop(0))
            if path in served.redirects:
                self.send_response(302)
                self.send_header("Location", served.redirects[path])
                self.send_header("Content-Length", "0")
                return self.end_headers()
            if path not in served.files:
                return self.send_error(404)
            content, start = served.files[path], 0
            if wanted and served.ranges:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if start >= len(content):
                    return self.send_error(416)
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            else:
                self.send_response(200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            body = content[start:]
            self.wfile.write(body[: served.cut_after.pop(0)] if served.cut_after else body)
            return None

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    served.address = f"http://127.0.0.1:{server.server_address[1]}"
    yield served
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def content() -> bytes:
    """What `host` serves as file.bin."""
    return CONTENT


@pytest.fixture
def make_tar() -> Callable[..., Path]:
    """Writes a .tar.gz of files and of members without content."""
    return _tar


def _tar(path: Path, *members: tarfile.TarInfo, files: dict[str, bytes] | None = None) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in (files or {}).items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for member in members:
            tar.addfile(member)
    return path

"""Downloads against a server that misbehaves on request."""

from pathlib import Path
from typing import Any

import pytest

from discreet.data.download import Remote, fetch
from discreet.errors import UserError


def test_a_file_arrives_whole_and_progress_is_told(host: Any, content: bytes, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    path = fetch(host.remote(), tmp_path, progress=lambda *each: told.append(each))
    assert path.read_bytes() == content
    assert told[-1] == ("file.bin", len(content), len(content))
    assert [each[1] for each in told] == sorted(each[1] for each in told)
    assert [each.name for each in tmp_path.iterdir()] == ["file.bin"]


def test_a_file_that_is_there_is_not_asked_for_again(host: Any, tmp_path: Path) -> None:
    fetch(host.remote(), tmp_path)
    fetch(host.remote(), tmp_path)
    assert len(host.asked) == 1


def test_a_damaged_file_is_replaced(host: Any, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file.bin").write_bytes(content[:-1] + b"?")
    assert fetch(host.remote(), tmp_path).read_bytes() == content


def test_a_part_from_an_earlier_day_is_resumed(host: Any, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(content[:1000])
    assert fetch(host.remote(), tmp_path).read_bytes() == content
    assert host.asked == [("file.bin", "bytes=1000-")]


def test_a_part_of_another_edition_is_thrown_away(host: Any, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(b"?" * 1000)
    assert fetch(host.remote(), tmp_path).read_bytes() == content
    assert [wanted for _, wanted in host.asked] == ["bytes=1000-", None]


def test_a_part_longer_than_the_file_is_thrown_away(host: Any, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(content + b"more")
    assert fetch(host.remote(), tmp_path).read_bytes() == content


def test_a_broken_transfer_goes_on_where_it_stopped(host: Any, content: bytes, tmp_path: Path) -> None:
    host.cut_after = [500_000, 100_000]
    assert fetch(host.remote(), tmp_path, pause=0).read_bytes() == content
    assert [wanted for _, wanted in host.asked] == [None, "bytes=500000-", "bytes=600000-"]


def test_a_server_without_ranges_is_asked_from_the_start(host: Any, content: bytes, tmp_path: Path) -> None:
    host.ranges = False
    host.cut_after = [500_000]
    assert fetch(host.remote(), tmp_path, pause=0).read_bytes() == content


def test_a_truncated_file_is_refused_after_some_attempts(host: Any, content: bytes, tmp_path: Path) -> None:
    host.files["file.bin"] = content[:1000]
    with pytest.raises(UserError, match=r"could not resume \(2 attempts\)|ended after"):
        fetch(host.remote(), tmp_path, attempts=2, pause=0)
    assert not (tmp_path / "file.bin").exists()


def test_a_file_with_another_checksum_never_gets_its_name(host: Any, content: bytes, tmp_path: Path) -> None:
    host.files["file.bin"] = content[:-1] + b"?"
    with pytest.raises(UserError, match="not the file that was published"):
        fetch(host.remote(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_busy_servers_are_asked_again(host: Any, content: bytes, tmp_path: Path) -> None:
    host.errors = [503, 429]
    assert fetch(host.remote(), tmp_path, pause=0).read_bytes() == content


def test_after_a_missing_file_the_next_address_is_tried(host: Any, content: bytes, tmp_path: Path) -> None:
    remote = host.remote("file.bin", content, "gone.bin", "file.bin")
    assert fetch(remote, tmp_path).read_bytes() == content
    assert [path for path, _ in host.asked] == ["gone.bin", "file.bin"]


def test_when_no_address_has_the_file_all_answers_are_told(host: Any, content: bytes, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.bin: the server answers 404"):
        fetch(host.remote("file.bin", content, "gone.bin"), tmp_path)


def test_a_redirect_is_followed(host: Any, content: bytes, tmp_path: Path) -> None:
    host.redirects["moved.bin"] = f"{host.address}/file.bin"
    assert fetch(host.remote("file.bin", content, "moved.bin"), tmp_path).read_bytes() == content


def test_a_redirect_to_a_local_file_is_not_followed(host: Any, content: bytes, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(content)
    host.redirects["moved.bin"] = secret.as_uri()
    with pytest.raises(UserError):
        fetch(host.remote("file.bin", content, "moved.bin"), tmp_path / "into", attempts=1, pause=0)


def test_nobody_there_is_said_so(tmp_path: Path) -> None:
    nowhere = ("http://127.0.0.1:1/file.bin",)
    remote = Remote(filename="file.bin", addresses=nowhere, size=1, checksum="md5:0")
    with pytest.raises(UserError, match="no connection"):
        fetch(remote, tmp_path, attempts=2, pause=0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which only Linux has")
def test_a_full_disk_is_explained(host: Any, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").symlink_to("/dev/full")
    with pytest.raises(UserError, match=r"disk that holds .* is full"):
        fetch(host.remote(), tmp_path)


def test_a_folder_that_cannot_be_made_is_explained(host: Any, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(UserError, match="cannot be written"):
        fetch(host.remote(), tmp_path / "taken")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"filename": "../up"}, "bare name"),
        ({"addresses": ("file:///etc/passwd",)}, "http"),
        ({"addresses": ()}, "http"),
        ({"checksum": "crc32:1"}, "md5"),
    ],
)
def test_a_remote_that_cannot_be_meant_is_refused(change: dict[str, object], problem: str) -> None:
    sound = {"filename": "a", "addresses": ("https://a.example/a",), "size": 1, "checksum": "md5:0"}
    with pytest.raises(ValueError, match=problem):
        Remote(**{**sound, **change})  # type: ignore[arg-type]

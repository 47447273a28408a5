"""Archives that are damaged or mean harm."""

import hashlib
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.data.archives import unpack
from discreet.errors import CorruptFile, UserError

MakeTar = Callable[..., Path]


def test_only_what_is_wanted_is_unpacked(make_tar: MakeTar, tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "a.tar.gz", files={"top/keep/x": b"x", "top/leave/y": b"y", "other": b"z"})
    (tmp_path / "out").mkdir()
    unpack(archive, tmp_path / "out", wanted=["top/keep"])
    assert sorted(str(each.relative_to(tmp_path / "out")) for each in (tmp_path / "out").rglob("*")) == [
        "top",
        "top/keep",
        "top/keep/x",
    ]


@pytest.mark.parametrize("name", ["../escaped", "top/../../escaped", "/tmp/escaped"])
def test_an_archive_that_climbs_out_is_refused(make_tar: MakeTar, tmp_path: Path, name: str) -> None:
    archive = make_tar(tmp_path / "a.tar.gz", files={"top/x": b"x", name: b"bad"})
    (tmp_path / "out").mkdir()
    with pytest.raises(CorruptFile, match="not to be trusted"):
        unpack(archive, tmp_path / "out", wanted=["top"])
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(make_tar: MakeTar, tmp_path: Path, kind: bytes) -> None:
    link = tarfile.TarInfo("top/link")
    link.type, link.linkname = kind, "../../secret"
    archive = make_tar(tmp_path / "a.tar.gz", link)
    with pytest.raises(CorruptFile, match="plain file"):
        unpack(archive, tmp_path, wanted=["top"])


@pytest.mark.parametrize("damage", ["cut", "flipped", "nonsense"])
def test_a_damaged_archive_leaves_nothing_behind(make_tar: MakeTar, tmp_path: Path, damage: str) -> None:
    content = hashlib.shake_128(b"noise").digest(100_000)
    archive = make_tar(tmp_path / "a.tar.gz", files={"top/x": content})
    raw = archive.read_bytes()
    damaged = {
        "cut": raw[:50_000],
        "flipped": raw[:50_000] + b"????" + raw[50_004:],
        "nonsense": b"no archive",
    }
    archive.write_bytes(damaged[damage])
    (tmp_path / "out").mkdir()
    with pytest.raises(CorruptFile, match="cannot be unpacked"):
        unpack(archive, tmp_path / "out", wanted=["top"])
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_in_the_way_is_not_overwritten(make_tar: MakeTar, tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "a.tar.gz", files={"top/x": b"new"})
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "x").write_bytes(b"old")
    with pytest.raises(UserError, match="in the way"):
        unpack(archive, tmp_path, wanted=["top"])
    assert (tmp_path / "top" / "x").read_bytes() == b"old"

"""Getting a named data set, from the first request to the records."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.data import named
from discreet.data.acquire import get
from discreet.data.download import Remote
from discreet.data.sources import SOURCES
from discreet.errors import UserError


def test_every_named_data_set_but_digits_has_addresses() -> None:
    assert set(SOURCES) == set(named.names()) - {"digits"}


def test_getting_a_data_set_downloads_unpacks_and_finds_it(
    host: Any, make_tar: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rows = b"".join(bytes([label, label]) + bytes(3072) for label in range(100))
    archive = make_tar(
        tmp_path / "a.tar.gz", files={f"cifar-100-binary/{split}.bin": rows for split in ("train", "test")}
    ).read_bytes()
    host.files["cifar.tar.gz"] = archive
    remote = host.remote("cifar.tar.gz", archive)
    wanted = Remote(**{**vars(remote), "unpack": ("cifar-100-binary",)})

    place = get("cifar-100", sources={"cifar-100": (wanted,)})

    assert place == tmp_path / "cache" / "discreet" / "cifar-100"
    assert [each.name for each in place.iterdir()] == ["cifar-100-binary"]
    assert len(named.load("cifar-100").train) == 100
    assert get("cifar-100", sources={"cifar-100": (wanted,)}) == place
    assert len(host.asked) == 1


def test_digits_need_no_download() -> None:
    with pytest.raises(UserError, match="needs no download"):
        get("digits")

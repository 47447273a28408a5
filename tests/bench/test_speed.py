import json

import pytest

from discreet.bench.speed import Setting, as_json, run, table
from discreet.errors import UserError


@pytest.fixture(scope="module")
def measured():
    ways = ["plain", "plain, channels last", "discreet fused", "opacus hooks"]
    return run([Setting(model="M1", batch=4)], ways, rounds=2, memory=False)


def test_every_way_is_measured_beside_plain_training(measured) -> None:
    assert [found.way for found in measured] == [
        "plain",
        "plain, channels last",
        "discreet fused",
        "opacus hooks",
    ]
    assert measured[0].ratio == 1
    assert all(found.milliseconds > 0 and found.ratio_to_best > 0 for found in measured)
    assert all(found.cpu_to_best > 0 for found in measured)


def test_private_sums_are_those_of_one_record_at_a_time(measured) -> None:
    errors = {found.way: found.error for found in measured}
    assert errors["plain"] is None
    assert errors["discreet fused"] < 1e-5
    assert errors["opacus hooks"] < 1e-5


def test_the_table_and_the_file_hold_the_same_measurements(measured) -> None:
    lines = table(measured).splitlines()
    assert len(lines) == 1 + len(measured)
    assert "discreet fused" in lines[3]
    saved = json.loads(as_json(measured))
    assert [row["way"] for row in saved["measurements"]] == [found.way for found in measured]
    assert saved["machine"]["threads"] >= 1


def test_a_way_that_fails_is_reported_and_the_others_go_on(monkeypatch) -> None:
    from discreet.bench import speed_peers

    def broken(model):
        raise RuntimeError("no such luck")

    monkeypatch.setitem(speed_peers.WAYS, "opacus ghost", speed_peers.Way(build=broken))
    failed, fine = run([Setting(model="M1", batch=2)], ["opacus ghost", "plain"], rounds=1, memory=False)
    assert "no such luck" in table([failed])
    assert fine.failure == ""


def test_a_way_whose_package_is_missing_is_skipped_by_name(monkeypatch) -> None:
    from discreet.bench import speed_peers

    absent = speed_peers.Way(build=speed_peers.Plain, needs="no_such_package")
    monkeypatch.setitem(speed_peers.WAYS, "jax-privacy", absent)
    skipped, fine = run([Setting(model="M1", batch=2)], ["jax-privacy", "plain"], rounds=1, memory=False)
    assert "skipped: no_such_package is not installed" in table([skipped])
    assert fine.failure == ""


@pytest.mark.parametrize("model", ["M1", "M2", "M3"])
def test_jax_privacy_gives_the_sum_of_one_record_at_a_time(model) -> None:
    pytest.importorskip("jax_privacy")
    (found,) = run([Setting(model=model, batch=4)], ["jax-privacy"], rounds=1, memory=False)
    assert found.failure == ""
    assert found.error < 1e-4


@pytest.mark.parametrize("text", ["M1", "M9:4", "M1:0", "M1:many"])
def test_settings_that_make_no_sense_are_refused(text) -> None:
    with pytest.raises(UserError):
        Setting.parse(text)


def test_unknown_ways_are_refused() -> None:
    with pytest.raises(UserError, match="among plain"):
        run([Setting(model="M1", batch=2)], ["magic"])

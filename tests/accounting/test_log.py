import json
import os

import pytest

from discreet.accounting.budget import Accounting, Budget
from discreet.accounting.events import Gaussian, PoissonGaussian, Several
from discreet.accounting.history import ChargePlan, LogHeader
from discreet.accounting.log import LOG_NAME, EventLog, read_log
from discreet.errors import CorruptFile, UserError

A = PoissonGaussian(sample_rate=0.01, noise_multiplier=1.1)
B = Several(
    events=(PoissonGaussian(sample_rate=0.1 + 0.2, noise_multiplier=1 / 3), Gaussian(noise_multiplier=5.0))
)
HEADER = LogHeader(
    budget=Budget(epsilon=1.0, delta=1e-5),
    accounting=Accounting.VISIBLE,
    secure_noise=True,
    plan=ChargePlan(releases=((A, 10), (B, 5)), once=(("statistics", Gaussian(noise_multiplier=30.0)),)),
)


@pytest.fixture
def folder(tmp_path):
    """The folder of a run that charged statistics, three times A and two times B."""
    with EventLog.create(tmp_path, HEADER) as log:
        log.charge_once("statistics", Gaussian(noise_multiplier=30.0))
        log.charge(0, A)
        log.charge(1, A, count=2)
        log.charge(3, B, count=2)
    return tmp_path


def test_a_log_gives_back_header_and_charges_exactly(folder):
    history = read_log(folder)
    assert history.header == HEADER
    assert history.releases == ((A, 3), (B, 2))
    assert history.once == (("statistics", Gaussian(noise_multiplier=30.0)),)
    assert history.charged == 5


def test_a_charge_is_synchronised_before_it_is_acknowledged(tmp_path, monkeypatch):
    steps = []
    write, synchronise = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda *a: (steps.append("write"), write(*a))[1])
    monkeypatch.setattr(os, "fsync", lambda d: (steps.append("fsync"), synchronise(d))[1])
    with EventLog.create(tmp_path, HEADER) as log:
        steps.clear()
        log.charge(0, A)
        assert steps == ["write", "fsync"]
        assert read_log(tmp_path).charged == 1


def test_charging_a_paid_release_again_is_free_and_another_event_refused(folder):
    before = (folder / LOG_NAME).read_bytes()
    with EventLog.resume(folder) as log:
        log.charge(2, A)
        log.charge(3, B, count=2)
        log.charge_once("statistics", Gaussian(noise_multiplier=30.0))
        assert (folder / LOG_NAME).read_bytes() == before
        with pytest.raises(UserError, match="release 2 was charged as PoissonGaussian"):
            log.charge(2, B)
        with pytest.raises(UserError, match="release 2 was charged as"):
            log.charge(2, A, count=2)
        with pytest.raises(UserError, match="'statistics' was charged as"):
            log.charge_once("statistics", Gaussian(noise_multiplier=31.0))
        assert (folder / LOG_NAME).read_bytes() == before
        log.charge(4, B, count=3)
    assert read_log(folder).releases == ((A, 3), (B, 4))


def test_release_numbers_are_not_skipped(folder):
    with EventLog.resume(folder) as log:
        for release, count in ((6, 1), (-1, 1), (5, 0)):
            with pytest.raises(ValueError, match="next release to charge is number 5"):
                log.charge(release, A, count)


def test_every_crash_while_writing_loses_at_most_the_unacknowledged_charge(folder):
    whole = (folder / LOG_NAME).read_bytes()
    last = whole[:-1].rindex(b"\n") + 1
    for length in [last, last + 1, *range(last + 2, len(whole), 40), len(whole) - 1]:
        (folder / LOG_NAME).write_bytes(whole[:length])
        assert read_log(folder).releases == ((A, 3),)
        with EventLog.resume(folder) as log:
            assert log.charged == 3
            log.charge(3, B, count=2)
        assert (folder / LOG_NAME).read_bytes() == whole


def test_a_torn_header_is_a_run_that_never_began(folder):
    (folder / LOG_NAME).write_bytes((folder / LOG_NAME).read_bytes()[:100])
    with pytest.raises(CorruptFile, match="stopped before its first charge"):
        read_log(folder)


def test_a_changed_byte_is_noticed_wherever_it_is(folder):
    whole = (folder / LOG_NAME).read_bytes()
    for place in range(0, len(whole) - 1, 3):
        changed = bytearray(whole)
        changed[place] ^= 1
        (folder / LOG_NAME).write_bytes(bytes(changed))
        with pytest.raises(CorruptFile, match=r"line \d+ is corrupt"):
            read_log(folder)


@pytest.mark.parametrize("lines", [[0, 2, 3, 4], [0, 1, 3, 2, 4], [1, 2, 3, 4], [0, 1, 2, 2, 3, 4]])
def test_lost_swapped_and_repeated_lines_are_noticed(folder, lines):
    whole = (folder / LOG_NAME).read_bytes().splitlines(keepends=True)
    (folder / LOG_NAME).write_bytes(b"".join(whole[i] for i in lines))
    with pytest.raises(CorruptFile, match="is corrupt"):
        read_log(folder)


def test_without_the_chain_the_same_edit_would_pass(folder):
    """The planted fault: lines that are checked one by one. The edit that halves a count is then not seen."""
    lines = (folder / LOG_NAME).read_text().splitlines()
    records = [json.loads(line)["record"] for line in lines]
    assert records[3] == {"first": 1, "count": 2, "event": A.to_json()}
    records[3]["count"], records[4]["first"] = 1, 2
    firsts = [record["first"] for record in records if "first" in record]
    counts = [record["count"] for record in records if "first" in record]
    assert firsts == [0, *(sum(counts[: i + 1]) for i in range(len(counts) - 1))]  # consistent in itself
    spoiled = [{**json.loads(line), "record": record} for line, record in zip(lines, records, strict=True)]
    text = "\n".join(json.dumps(each, sort_keys=False, separators=(",", ":")) for each in spoiled) + "\n"
    (folder / LOG_NAME).write_text(text)
    with pytest.raises(CorruptFile, match="line 4 is corrupt"):
        read_log(folder)


def test_a_log_is_never_overwritten_and_has_one_writer(folder):
    with pytest.raises(UserError, match="exists already"):
        EventLog.create(folder, HEADER)
    with EventLog.resume(folder), pytest.raises(UserError, match="in use by another process"):
        EventLog.resume(folder)
    with pytest.raises(UserError, match="no run to resume"):
        EventLog.resume(folder / "elsewhere")
    with pytest.raises(UserError, match="not the folder of a run"):
        read_log(folder / "elsewhere")


def test_after_a_failed_write_nothing_more_is_charged(folder, monkeypatch):
    log = EventLog.resume(folder)
    write = os.write
    monkeypatch.setattr(os, "write", lambda d, data: write(d, data[:20]))
    with pytest.raises(OSError, match="is the disk full"):
        log.charge(5, A)
    monkeypatch.undo()
    assert log.charged == 5
    with pytest.raises(ValueError, match="is closed"):
        log.charge(5, A)
    assert read_log(folder).charged == 5


def test_a_later_schema_is_refused(folder):
    text = (folder / LOG_NAME).read_text()
    assert '"schema":1' in text
    with pytest.raises(ValueError, match="schema 2 is not"):
        LogHeader.from_json({**HEADER.to_json(), "schema": 2})

import stat

import pytest

from discreet.errors import CorruptFile
from discreet.noise.key import RunKey


def test_a_draw_is_a_function_of_key_release_trial_and_purpose():
    key = RunKey.from_seed(1)
    place = ("noise", 3, 2)
    assert key.stream(*place).words(8).equal(key.stream(*place).words(8))
    for other in (("batch", 3, 2), ("noise", 4, 2), ("noise", 3, 1), ("noise", 2, 3)):
        assert not key.stream(*place).words(8).equal(key.stream(*other).words(8))
    assert not key.stream(*place).words(8).equal(RunKey.from_seed(2).stream(*place).words(8))


def test_a_stream_goes_on_where_it_stopped():
    key = RunKey.from_seed(1)
    stream = key.stream("noise", 0)
    pieces = [stream.words(3), stream.words(0), stream.words(5)]
    whole = key.stream("noise", 0).words(8)
    assert [word for piece in pieces for word in piece.tolist()] == whole.tolist()


def test_two_secret_keys_differ_and_do_not_show():
    one, two = RunKey.secret(), RunKey.secret()
    assert one.material != two.material
    assert one.is_secret
    assert one.material.hex() not in repr(one)
    assert str(one.material) not in repr(one)


def test_a_seeded_key_knows_that_it_is_not_secret():
    assert not RunKey.from_seed(5).is_secret
    assert RunKey.from_seed(5) == RunKey.from_seed(5)


@pytest.mark.parametrize("key", [RunKey.secret(), RunKey.from_seed(7)], ids=["secret", "seeded"])
def test_a_key_survives_in_a_file_that_only_its_owner_reads(tmp_path, key):
    key.save(tmp_path / "run.key")
    assert RunKey.load(tmp_path / "run.key") == key
    assert stat.S_IMODE((tmp_path / "run.key").stat().st_mode) == 0o600


def test_a_key_is_never_overwritten(tmp_path):
    RunKey.secret().save(tmp_path / "run.key")
    with pytest.raises(FileExistsError):
        RunKey.secret().save(tmp_path / "run.key")


@pytest.mark.parametrize(
    "text", ["", "secret", "secret 12", "secret zz", "one two three", "maybe " + "00" * 32]
)
def test_a_damaged_key_file_is_refused(tmp_path, text):
    (tmp_path / "run.key").write_text(text)
    with pytest.raises(CorruptFile, match="key"):
        RunKey.load(tmp_path / "run.key")

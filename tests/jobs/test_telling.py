"""What people read of a plan fits their terminal."""

import pytest

from discreet.jobs.telling import WIDTH, clock, row


@pytest.mark.parametrize("words", [1, 12, 40])
def test_a_row_is_folded_under_itself(words: int) -> None:
    lines = row("records", "seventeen " * words).splitlines()
    assert all(len(line) <= WIDTH for line in lines)
    assert lines[0].startswith("  records         seventeen")
    assert all(line.startswith(" " * 18 + "seventeen") for line in lines[1:])


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "1 s"), (0.4, "1 s"), (1.6, "2 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (5400, "1.5 h")],
)
def test_a_time_span_is_told_as_people_say_it(seconds: float, told: str) -> None:
    assert clock(seconds) == told

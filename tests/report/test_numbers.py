import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.report.numbers import at_most, duration, plain, ticks


@given(st.floats(min_value=1e-12, max_value=1e6))
def test_a_printed_bound_is_never_below_the_bound(value: float) -> None:
    printed = float(at_most(value).replace(",", ""))
    assert value <= printed <= value * 1.0011


def test_an_infinite_bound_is_called_infinite() -> None:
    assert at_most(math.inf) == at_most(math.nan) == "infinite"


@pytest.mark.parametrize(("value", "text"), [(1e-5, "1e-5"), (60000, "60,000"), (0.25, "0.25"), (0.0, "0")])
def test_numbers_are_written_short(value: float, text: str) -> None:
    assert plain(value) == text


@given(st.floats(min_value=-1e6, max_value=1e6), st.floats(min_value=0, max_value=1e6))
def test_ticks_ascend_and_cover_what_is_drawn(low: float, extent: float) -> None:
    marks = ticks(low, low + extent)
    tolerance = 1e-6 * max(1.0, abs(low), extent)
    assert marks[0] <= low + tolerance
    assert marks[-1] >= low + extent - tolerance
    assert all(later > earlier for earlier, later in pairwise(marks))
    assert 2 <= len(marks) <= 8


@pytest.mark.parametrize(("seconds", "text"), [(7, "7 s"), (125, "2 min 5 s"), (7260, "2 h 1 min")])
def test_durations_have_the_unit_that_suits_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_tick_is_the_round_number_that_it_stands_for() -> None:
    assert ticks(0.0, 1.0) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert ticks(0.0, 0.003) == [0.0, 0.001, 0.002, 0.003]
    assert ticks(0.0, 3e6)[-1] == 3e6

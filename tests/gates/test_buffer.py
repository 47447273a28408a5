import pytest
from scipy import stats

from discreet.errors import UserError
from discreet.gates import Buffer
from discreet.noise.key import RunKey

KEY = RunKey.from_seed(2)


def chosen(buffer, scores, number=0):
    return buffer.choose(scores, KEY.stream("buffer choice", number))


def test_the_candidate_whose_loss_went_down_more_is_taken():
    assert chosen(Buffer(size=3), [-1.0, -2.5, -2.0]) == 1


def test_equation_16_as_printed_takes_the_other():
    assert chosen(Buffer(size=3, takes="worse"), [-1.0, -2.5, -2.0]) == 0


def test_one_candidate_is_taken_as_it_is():
    assert chosen(Buffer(size=2, tie=9.0), [-1.0]) == 0


def coin_is_fair(buffer, scores, between=(0, 1)) -> bool:
    counts = [0, 0]
    for number in range(2000):
        counts[between.index(chosen(buffer, scores, number))] += 1
    return bool(stats.chisquare(counts).pvalue > 1e-4)


def test_a_tie_is_decided_by_a_fair_coin():
    assert coin_is_fair(Buffer(size=2, tie=0.5), [-1.0, -1.4])


def test_of_three_only_the_two_best_can_tie():
    assert coin_is_fair(Buffer(size=3, tie=0.5), [-1.0, -3.0, -2.8], between=(1, 2))


def test_no_coin_is_tossed_beyond_the_tie():
    assert not coin_is_fair(Buffer(size=2, tie=0.3), [-1.0, -1.4])


def test_patience_lowers_how_many_are_needed_until_something_passes():
    buffer = Buffer(size=3, patience=2)
    assert [buffer.needed(rejected) for rejected in range(5)] == [3, 3, 1, 1, 1]
    assert Buffer(size=3, patience=None).needed(1000) == 3


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"size": 0}, "size is 0"),
        ({"tie": -1.0}, "tie is"),
        ({"patience": 0}, "patience is 0"),
        ({"takes": "any"}, "takes"),
    ],
)
def test_a_buffer_that_is_none_is_refused(wrong, told):
    with pytest.raises(UserError, match=told):
        Buffer(**wrong)

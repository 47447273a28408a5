import math
from itertools import pairwise

import pytest

from discreet import schedules
from discreet.schedules import (
    UNMOVED,
    Constant,
    Cosine,
    Exponential,
    Linear,
    PhasedDecay,
    Schedule,
    Step,
)

EVERY_KIND: list[Schedule] = [
    Constant(value=2.0),
    Step(start=2.0, factor=0.5, every=10),
    Linear(start=1.0, end=0.1),
    Exponential(start=1.0, end=0.01),
    Cosine(start=1.0, end=0.2),
]


@pytest.mark.parametrize("schedule", EVERY_KIND, ids=lambda schedule: schedule.kind)
def test_a_schedule_survives_being_written_down(schedule):
    assert schedules.from_json(schedules.to_json(schedule)) == schedule


@pytest.mark.parametrize(
    "schedule", [Linear(end=0.1), Exponential(end=0.1), Cosine(end=0.1)], ids=lambda s: s.kind
)
def test_a_ramp_starts_and_ends_where_it_says_and_never_rises(schedule):
    values = [schedule.at(n, 50) for n in range(50)]
    assert values[0] == pytest.approx(1.0)
    assert values[-1] == pytest.approx(0.1)
    assert all(later < earlier for earlier, later in pairwise(values))


def test_a_ramp_over_one_release_stays_at_its_start():
    assert Linear(end=0.1).at(0, 1) == 1.0


def test_the_middle_of_each_ramp_is_what_its_name_says():
    assert Linear(start=2.0, end=1.0).at(50, 101) == pytest.approx(1.5)
    assert Exponential(start=4.0, end=1.0).at(50, 101) == pytest.approx(2.0)
    assert Cosine(start=3.0, end=1.0).at(25, 101) == pytest.approx(2.0 + math.cos(math.pi / 4))


def test_steps_fall_after_every_so_many_releases():
    schedule = Step(start=8.0, factor=0.5, every=10)
    assert [schedule.at(n, 40) for n in (0, 9, 10, 19, 20, 39)] == [8.0, 8.0, 4.0, 4.0, 2.0, 1.0]


def test_a_schedule_is_read_from_a_line_of_text():
    assert schedules.parse("step:every=50,factor=0.5") == Step(every=50, factor=0.5)
    assert schedules.parse("cosine: start=2, end=0.1") == Cosine(start=2.0, end=0.1)
    assert schedules.parse("constant") == Constant()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("wobble:end=1", "schedule kind is 'wobble'"),
        ("linear", "end"),
        ("linear:end", "not of the form name=number"),
        ("linear:end=high", "not of the form name=number"),
        ("linear:end=0", "positive"),
        ("linear:end=nan", "positive"),
        ("step:every=0", "at least 1"),
        ("cosine:end=1,speed=3", "speed"),
    ],
)
def test_a_bad_schedule_is_refused_with_the_reason(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        schedules.parse(text)


def test_the_slow_path_of_a_decay_goes_from_where_it_starts_to_its_floor():
    decay = PhasedDecay(fast=0.9, slow=0.99, trigger=0.5, floor=0.5)
    path = decay.slow_path(stages=4)
    assert [phase.noise for phase, _ in path] == pytest.approx([1.0, 0.5**0.25, 0.5**0.5, 0.5**0.75, 0.5])
    assert all(phase.gate_noise == 1.0 for phase, _ in path)
    *lasting, last = [updates for _, updates in path]
    assert last == math.inf
    # So many slow steps lead from 1 to the floor.
    assert 0.99 ** sum(lasting) == pytest.approx(0.5)


@pytest.mark.parametrize("still", [{"slow": 1.0}, {"floor": 1.0}])
def test_a_decay_that_never_moves_has_a_path_of_one_phase(still):
    decay = PhasedDecay(**{"fast": 0.9, "slow": 0.99, "trigger": 0.5, "floor": 0.5, **still})
    assert decay.slow_path() == [(UNMOVED, math.inf)]

import json
import math
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting.events import (
    Event,
    Gaussian,
    PoissonGaussian,
    PoissonPureDP,
    PureDP,
    Several,
    event_from_json,
    joint_multiplier,
    register_event,
)

POSITIVE = st.floats(min_value=1e-300, max_value=1e300)
RATES = st.floats(min_value=0.0, max_value=1.0)
EVENTS = st.one_of(
    st.builds(Gaussian, noise_multiplier=POSITIVE),
    st.builds(PoissonGaussian, sample_rate=RATES, noise_multiplier=POSITIVE),
    st.builds(PureDP, epsilon=POSITIVE),
    st.builds(PoissonPureDP, sample_rate=RATES, epsilon=POSITIVE),
)


@given(st.one_of(EVENTS, st.lists(EVENTS, min_size=1, max_size=3).map(lambda e: Several(events=tuple(e)))))
def test_json_gives_back_every_event_to_the_last_bit(event):
    assert event_from_json(json.loads(json.dumps(event.to_json()))) == event


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"kind": "laplace", "scale": 1.0}, "unknown event kind 'laplace'"),
        ({"kind": "gaussian"}, "has the fields"),
        ({"kind": "gaussian", "noise_multiplier": 1.0, "more": 1}, "has the fields"),
        ({"kind": "gaussian", "noise_multiplier": "1.0"}, "must be a float"),
        ({"kind": "gaussian", "noise_multiplier": 1}, "must be a float"),
        ({"noise_multiplier": 1.0}, "unknown event kind None"),
    ],
)
def test_foreign_records_are_refused_by_name(record, message):
    with pytest.raises(ValueError, match=message):
        event_from_json(record)


@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.nan, math.inf])
def test_noise_multipliers_that_cannot_be_are_refused(multiplier):
    with pytest.raises(ValueError, match="noise_multiplier must be a finite number"):
        PoissonGaussian(sample_rate=0.1, noise_multiplier=multiplier)


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan])
def test_rates_outside_of_0_to_1_are_refused(rate):
    with pytest.raises(ValueError, match="sample_rate must be a finite number"):
        PoissonGaussian(sample_rate=rate, noise_multiplier=1.0)


def test_joint_multiplier_of_gaussians_on_one_batch():
    assert joint_multiplier([1.0, 10.0]) == pytest.approx(0.99503719)
    assert joint_multiplier([0.95**-1] * 4) == pytest.approx(0.526, abs=5e-4)
    assert joint_multiplier([1e-200, 1e-200]) == pytest.approx(1e-200 / math.sqrt(2))
    with pytest.raises(ValueError, match="at least one"):
        joint_multiplier([])
    with pytest.raises(ValueError, match="noise multiplier must be"):
        joint_multiplier([1.0, 0.0])


def test_a_kind_can_be_taken_only_once():
    with pytest.raises(ValueError, match="already taken by Gaussian"):

        @register_event
        @dataclass(frozen=True, kw_only=True)
        class Impostor(Event):
            kind: ClassVar[str] = "gaussian"

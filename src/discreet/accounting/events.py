"""Privacy events: immutable nouns that say what was released, with an exact JSON form.

An event describes one release. It holds no bound: what an event costs is said by the accountants, each of
which has one function per kind (`rdp.rdp_curve`, `profiles.privacy_profile`). A new kind is added in its
own module:

    @register_event
    @dataclass(frozen=True, kw_only=True)
    class MyEvent(Event):
        kind: ClassVar[str] = "my-event"
        rate: float

    @rdp_curve.register
    def _(event: MyEvent, orders, accounting): ...

Neighbours are data sets that differ by the addition or removal of one record, in both directions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar, get_type_hints

EVENT_SCHEMA = 1
"""Version of the JSON form of events."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One release. Two events that compare equal cost the same and are charged together."""

    kind: ClassVar[str] = ""

    def to_json(self) -> dict[str, Any]:
        """The event as a JSON object; `event_from_json` gives back an equal event, to the last bit."""
        return {"kind": self.kind} | {
            field.name: _encoded(getattr(self, field.name)) for field in fields(self)
        }

    def parts(self) -> tuple[Event, ...]:
        """The events that this one is the composition of; itself for all but `Several`."""
        return (self,)

    @property
    def lowest_acceptance(self) -> float:
        """The smallest probability that a trial of this event is accepted; 1 where nothing is rejected."""
        return 1.0

    @property
    def highest_acceptance(self) -> float:
        """The largest probability that a trial of this event is accepted; 1 where nothing is rejected."""
        return 1.0


class UnknownEventError(NotImplementedError):
    """No certified bound of the calculus in question is known for a kind of event."""


E = TypeVar("E", bound=type[Event])
_KINDS: dict[str, type[Event]] = {}


def register_event(cls: E) -> E:
    """Make a kind of event known to the JSON codec, under its `kind`."""
    if not cls.kind:
        raise ValueError(f"{cls.__name__}.kind must be a name that no other kind of event has")
    known = _KINDS.setdefault(cls.kind, cls)
    if known.__qualname__ != cls.__qualname__:
        raise ValueError(f"the event kind {cls.kind!r} is already taken by {known.__qualname__}")
    return cls


def event_from_json(record: Mapping[str, Any]) -> Event:
    """The event that `to_json` wrote. Unknown kinds, missing, foreign or mistyped fields are refused."""
    kind = record.get("kind")
    if kind not in _KINDS:
        raise ValueError(f"unknown event kind {kind!r}; this version knows {', '.join(sorted(_KINDS))}")
    cls = _KINDS[kind]
    given = {name: value for name, value in record.items() if name != "kind"}
    types = get_type_hints(cls)
    expected = {field.name: types[field.name] for field in fields(cls)}
    if given.keys() != expected.keys():
        raise ValueError(f"event {kind!r} has the fields {sorted(expected)}, not {sorted(given)}")
    return cls(**{name: _decoded(kind, name, value, expected[name]) for name, value in given.items()})


def _encoded(value: Any) -> Any:
    return [event.to_json() for event in value] if isinstance(value, tuple) else value


def _decoded(kind: str, name: str, value: Any, expected: Any) -> Any:
    if expected == tuple[Event, ...] and isinstance(value, list):
        return tuple(event_from_json(each) for each in value)
    if type(value) is not expected:
        wanted = getattr(expected, "__name__", expected)
        raise ValueError(f"event {kind!r}: {name} must be a {wanted}, not {value!r}")
    return value


def checked_number(
    name: str,
    value: float,
    *,
    low: float,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """`value` as a float if it lies between `low` and `high`, otherwise a ValueError that names the field."""
    number = float(value)
    inside = (number > low if open_low else number >= low) and (
        number < high if open_high else number <= high
    )
    if not (inside and math.isfinite(number)):
        interval = (
            f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high or high == math.inf else ']'}"
        )
        raise ValueError(f"{name} must be a finite number in {interval}, not {value!r}")
    return number


@register_event
@dataclass(frozen=True, kw_only=True)
class Gaussian(Event):
    """A sum of L2 sensitivity 1 over all records, plus Gaussian noise of that standard deviation."""

    kind: ClassVar[str] = "gaussian"

    noise_multiplier: float

    def __post_init__(self) -> None:
        value = checked_number("noise_multiplier", self.noise_multiplier, low=0.0, open_low=True)
        object.__setattr__(self, "noise_multiplier", value)


@register_event
@dataclass(frozen=True, kw_only=True)
class PoissonGaussian(Event):
    """A sum of L2 sensitivity 1 over a fresh Poisson sample, plus Gaussian noise of that multiplier.

    Every record enters the sample independently with probability `sample_rate`. A rate of 0 is free.
    """

    kind: ClassVar[str] = "poisson-gaussian"

    sample_rate: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        rate = checked_number("sample_rate", self.sample_rate, low=0.0, high=1.0)
        multiplier = checked_number("noise_multiplier", self.noise_multiplier, low=0.0, open_low=True)
        object.__setattr__(self, "sample_rate", rate)
        object.__setattr__(self, "noise_multiplier", multiplier)


@register_event
@dataclass(frozen=True, kw_only=True)
class PureDP(Event):
    """Any mechanism that is `epsilon`-differentially private, such as a noisy minimum over all records."""

    kind: ClassVar[str] = "pure-dp"

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_number("epsilon", self.epsilon, low=0.0))


@register_event
@dataclass(frozen=True, kw_only=True)
class PoissonPureDP(Event):
    """An `epsilon`-differentially private mechanism applied to a fresh Poisson sample of the records."""

    kind: ClassVar[str] = "poisson-pure-dp"

    sample_rate: float
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "sample_rate", checked_number("sample_rate", self.sample_rate, low=0.0, high=1.0)
        )
        object.__setattr__(self, "epsilon", checked_number("epsilon", self.epsilon, low=0.0))


@register_event
@dataclass(frozen=True, kw_only=True)
class Several(Event):
    """Several releases made and charged together, each with fresh randomness and a sample of its own."""

    kind: ClassVar[str] = "several"

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        if not self.events or not all(isinstance(event, Event) for event in self.events):
            raise ValueError(f"events must be a tuple of at least one Event, not {self.events!r}")

    def parts(self) -> tuple[Event, ...]:
        """The parts of all the events, flattened."""
        return tuple(part for event in self.events for part in event.parts())

    @property
    def lowest_acceptance(self) -> float:
        """That of the trial among the events."""
        return min(event.lowest_acceptance for event in self.events)

    @property
    def highest_acceptance(self) -> float:
        """That of the trial among the events."""
        return min(event.highest_acceptance for event in self.events)


def joint_multiplier(multipliers: Iterable[float]) -> float:
    """The multiplier of several Gaussian releases on one batch taken together: (sum of s^-2)^(-1/2).

    Guarantee: k Gaussian sums with multipliers s_1..s_k on the *same* Poisson batch are one Gaussian sum in
    the product space, of squared sensitivity-to-noise ratio sum of s_i^-2. Charging them as k independent
    Poisson samples would be too little.
    """
    checked = [checked_number("noise multiplier", value, low=0.0, open_low=True) for value in multipliers]
    if not checked:
        raise ValueError("joint_multiplier needs at least one noise multiplier")
    smallest = min(checked)
    return smallest / math.sqrt(math.fsum((smallest / value) ** 2 for value in checked))

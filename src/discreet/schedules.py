"""How public parameters move: by the release number, or by how much a run has been seen to improve.

A schedule never sees data, losses or weights. That is what lets a plan be accounted before it runs. A phased decay
(DPSGD-BR) follows a progress that was released, or measured on public records: where the parameters go is then known
only afterwards, and a run that uses one is held to its budget by a Renyi filter.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

from discreet.errors import UserError


@runtime_checkable
class Schedule(Protocol):
    """A positive public number for each release, counted from 0."""

    kind: ClassVar[str]

    def at(self, release: int, releases: int) -> float:
        """The value for `release` out of `releases` planned ones."""
        ...


@dataclass(frozen=True, kw_only=True)
class Constant:
    """The same value throughout."""

    kind: ClassVar[str] = "constant"
    value: float = 1.0

    def __post_init__(self) -> None:
        _positive("value", self.value)

    def at(self, release: int, releases: int) -> float:
        """The value, whatever the release."""
        return self.value


@dataclass(frozen=True, kw_only=True)
class Step:
    """`start`, multiplied by `factor` after every `every` releases."""

    kind: ClassVar[str] = "step"
    start: float = 1.0
    factor: float = 0.5
    every: int

    def __post_init__(self) -> None:
        _positive("start", self.start)
        _positive("factor", self.factor)
        if self.every < 1:
            raise UserError(f"every is {self.every}; a step schedule needs at least 1 release per step")

    def at(self, release: int, releases: int) -> float:
        """The value of the step that `release` lies on."""
        return self.start * self.factor ** (release // self.every)


@dataclass(frozen=True, kw_only=True)
class Ramp:
    """From `start` to `end` over the planned releases; subclasses say along which curve."""

    start: float = 1.0
    end: float

    def __post_init__(self) -> None:
        _positive("start", self.start)
        _positive("end", self.end)

    @staticmethod
    def progress(release: int, releases: int) -> float:
        """0 at the first planned release, 1 at the last."""
        return min(max(release / (releases - 1), 0.0), 1.0) if releases > 1 else 0.0


@dataclass(frozen=True, kw_only=True)
class Linear(Ramp):
    """A straight line from `start` to `end`."""

    kind: ClassVar[str] = "linear"

    def at(self, release: int, releases: int) -> float:
        """The value on the line."""
        return self.start + (self.end - self.start) * self.progress(release, releases)


@dataclass(frozen=True, kw_only=True)
class Exponential(Ramp):
    """A constant ratio from one release to the next, from `start` to `end`."""

    kind: ClassVar[str] = "exponential"

    def at(self, release: int, releases: int) -> float:
        """The value on the geometric curve."""
        return float(self.start * (self.end / self.start) ** self.progress(release, releases))


@dataclass(frozen=True, kw_only=True)
class Cosine(Ramp):
    """Half a cosine wave from `start` to `end`: flat at both ends."""

    kind: ClassVar[str] = "cosine"

    def at(self, release: int, releases: int) -> float:
        """The value on the half wave."""
        weight = 0.5 * (1.0 + math.cos(math.pi * self.progress(release, releases)))
        return self.end + (self.start - self.end) * weight


_KINDS: dict[str, type[Constant] | type[Step] | type[Linear] | type[Exponential] | type[Cosine]] = {
    cls.kind: cls for cls in (Constant, Step, Linear, Exponential, Cosine)
}


def parse(text: str) -> Schedule:
    """The schedule that a line such as `cosine:end=0.1` or `step:every=50,factor=0.5` describes."""
    kind, _, rest = text.partition(":")
    settings: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in rest.split(","))):
        name, equals, value = part.partition("=")
        try:
            settings[name.strip()] = int(value) if name.strip() == "every" else float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise UserError(f"schedule {text!r}: {part!r} is not of the form name=number")
    return from_json({"kind": kind.strip(), **settings})


def to_json(schedule: Schedule) -> dict[str, Any]:
    """A plain dictionary that `from_json` reads back."""
    return {"kind": schedule.kind, **asdict(schedule)}  # type: ignore[call-overload]


def from_json(record: dict[str, Any]) -> Schedule:
    """The schedule that `to_json` wrote."""
    if not isinstance(record, dict):
        raise UserError(
            f"a schedule is {record!r}; it is a text such as cosine:end=0.1, or a table with a kind"
        )
    settings = dict(record)
    kind = settings.pop("kind", None)
    if kind not in _KINDS:
        raise UserError(f"schedule kind is {kind!r}; it can be {', '.join(sorted(_KINDS))}")
    try:
        return _KINDS[kind](**settings)
    except TypeError as error:
        raise UserError(f"schedule {kind!r}: {str(error).split('__init__() ')[-1]}") from None


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise UserError(f"{name} is {value}; a schedule's values are positive and finite")


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Factors on the parameters of a run, where a phased decay has moved them to.

    Attributes:
        noise: on sigma, the noise multiplier of the candidates.
        gate_noise: on sigma_v, the noise multiplier of the gate.
        gate_threshold: on beta, the threshold of the gate.
        learning_rate: on eta.
    """

    noise: float = 1.0
    gate_noise: float = 1.0
    gate_threshold: float = 1.0
    learning_rate: float = 1.0


UNMOVED = Phase()


@dataclass(frozen=True, kw_only=True)
class PhasedDecay:
    """The phased parameter decay of DPSGD-BR (its definitions 9 to 12).

    After each update that improved the model by more than `trigger`, sigma, sigma_v and eta are multiplied by `fast`;
    after any other, sigma, beta and eta by `slow`. The paper has no floors; without them the noise falls until a
    single trial costs the whole budget.

    Attributes:
        fast: alpha_F.
        slow: alpha_S.
        trigger: p, in the unit of the progress.
        floor: the smallest factor that anything is moved to.
    """

    fast: float
    slow: float
    trigger: float
    floor: float

    def __post_init__(self) -> None:
        for name in ("fast", "slow"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise UserError(f"{name} is {getattr(self, name)}; a factor of decay lies in (0, 1]")
        if not 0.0 < self.floor <= 1.0:
            raise UserError(f"floor is {self.floor}; the smallest factor lies in (0, 1]")
        if not math.isfinite(self.trigger):
            raise UserError(f"trigger is {self.trigger}; it is a finite number")

    def moved(self, phase: Phase, progress: float) -> Phase:
        """The phase after an update with that progress; one that is not a number counts as none."""
        names = ("noise", "gate_noise", "learning_rate")
        factor = self.fast
        if not progress > self.trigger:
            names, factor = ("noise", "gate_threshold", "learning_rate"), self.slow
        moved = {name: max(self.floor, factor * getattr(phase, name)) for name in names}
        return replace(phase, **moved)

    @property
    def corners(self) -> tuple[Phase, ...]:
        """The extremes that a gate's own parameters can be moved to."""
        ends = (self.floor, 1.0)
        return tuple(Phase(gate_noise=noise, gate_threshold=beta) for noise in ends for beta in ends)

    def slow_path(self, stages: int = 16) -> list[tuple[Phase, float]]:
        """The phases that slow decay alone leads through, in stages, each with the number of updates that it lasts."""
        if self.slow == 1.0 or self.floor == 1.0:
            return [(UNMOVED, math.inf)]
        lasting = math.log(self.floor) / stages / math.log(self.slow)
        factors = [self.floor ** (stage / stages) for stage in range(stages + 1)]
        phases = [Phase(noise=each, gate_threshold=each, learning_rate=each) for each in factors]
        return [*((phase, lasting) for phase in phases[:-1]), (phases[-1], math.inf)]

    @property
    def typical(self) -> Phase:
        """A phase half-way to the floor, for estimates before a run; its threshold has not moved."""
        factor = math.sqrt(self.floor)
        return Phase(noise=factor, gate_noise=factor, learning_rate=factor)

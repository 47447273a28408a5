"""What the first-order recipes share: one clipped, noisy sum per release, handed to an optimizer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict

from discreet import schedules
from discreet.accounting import Accounting, Budget
from discreet.errors import UserError
from discreet.noise.gaussian import GaussianNoise
from discreet.optimizers import OptimizerChoice
from discreet.plan import MOST_RELEASES, Clipping, Plan, fit_to_budget
from discreet.recipes.presets import Presets
from discreet.sampling import PoissonSampler
from discreet.schedules import Constant, Schedule
from discreet.typed import require_types

if TYPE_CHECKING:
    from discreet.gates.selecting import Selecting
    from discreet.gradients.clipping import ClippingRule
    from discreet.memory import Memory

_DEFAULT_EPOCHS = 30.0


class FurtherParts(TypedDict, total=False):
    """Parts of a plan that only some recipes have, by the names that the plan knows them by."""

    selecting: Selecting
    memory: Memory
    claimed_budget: float | None


@dataclass(frozen=True, kw_only=True)
class FirstOrder:
    """Settings of every recipe that releases clipped, noisy gradients and nothing else.

    Args:
        expected_batch_size: B = qN, the mean size of a Poisson batch; sums are divided by it.
        epochs: passes over the data, as releases times sample rate; with `releases` at most one of the two.
        releases: T, how many noisy gradients are released. Left open, 30 epochs; or, where `noise_multiplier` is
            given, as many as the budget allows.
        noise_multiplier: sigma, noise over sensitivity. Left open, the smallest that keeps within the budget.
        clip_norm: C, the most that one record may contribute, as an L2 norm over all trainable parameters.
        clipping: "flat" clips a record's whole gradient; "layer-wise" clips the part of each of the G layers
            to C / sqrt(G), which adds up to the same C; "automatic" scales every gradient to a norm just below C
            (AUTO-S); "scaled" multiplies by C / Z and clips to C what is longer than Z.
        scaling_bound: Z, for "scaled" clipping; public.
        learning_rate: eta, applied to the noisy sum over B.
        learning_rate_schedule: a factor on the learning rate, a public function of the release number.
        noise_schedule: a factor on the noise multiplier; accounted release by release.
        clip_schedule: a factor on the clip norm; the noise follows it.
        average: decay of an exponential moving average of the weights, which is then what is released.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    presets: ClassVar[Presets] = {}
    clippings: ClassVar[tuple[str, ...]] = ("flat", "layer-wise", "automatic", "scaled")

    expected_batch_size: int = 256
    epochs: float | None = None
    releases: int | None = None
    noise_multiplier: float | None = None
    clip_norm: float = 1.0
    clipping: str = "flat"
    scaling_bound: float | None = None
    learning_rate: float = 0.5
    learning_rate_schedule: Schedule = Constant()
    noise_schedule: Schedule = Constant()
    clip_schedule: Schedule = Constant()
    average: float | None = None

    def __post_init__(self) -> None:
        require_types(self)
        _at_least("expected_batch_size", self.expected_batch_size, 1)
        if self.releases is not None:
            if self.releases > MOST_RELEASES:
                raise UserError(f"releases is {self.releases}; a plan has at most {MOST_RELEASES:,}")
            _at_least("releases", self.releases, 1)
            if self.epochs is not None:
                raise UserError("epochs and releases say the same thing; give one of them")
        for name in ("epochs", "noise_multiplier", "clip_norm", "learning_rate", "scaling_bound"):
            require_positive(name, getattr(self, name))
        require_one_of("clipping", self.clipping, self.clippings)
        if (self.clipping == "scaled") != (self.scaling_bound is not None):
            raise UserError('"scaled" clipping and scaling_bound belong together; give both or neither')
        if self.average is not None and not 0 < self.average < 1:
            raise UserError(
                f"average is {self.average}; the decay of the weights' average lies between 0 and 1"
            )
        if (
            isinstance(self.noise_schedule, schedules.Ramp)
            and self.noise_multiplier
            and not (self.releases or self.epochs)
        ):
            raise UserError(
                "a noise schedule that runs to the last release needs releases or epochs to be given"
            )

    def optimizer(self) -> OptimizerChoice:
        """The optimizer that the private gradients go to."""
        raise NotImplementedError

    def plan(self, examples: int, budget: Budget, *, accounting: Accounting = Accounting.VISIBLE) -> Plan:
        """The run on `examples` records within `budget`; what was left open is calibrated.

        Guarantee: see `discreet.plan.Plan`. The number of examples is taken as public.
        """
        if self.expected_batch_size > examples:
            raise UserError(
                f"expected_batch_size is {self.expected_batch_size} but there are only {examples} records; "
                f"it can be at most that many"
            )
        rate = self.expected_batch_size / examples
        releases = self.releases or max(1, round((self.epochs or _DEFAULT_EPOCHS) / rate))
        if releases > MOST_RELEASES:
            raise UserError(
                f"epochs is {self.epochs}: that is {releases:.3g} releases; a plan has at most {MOST_RELEASES:,}"
            )
        sampler = PoissonSampler(examples=examples, rate=rate)
        draft = Plan(
            recipe=self.name,
            settings=self.to_json(),
            budget=budget,
            accounting=accounting,
            sampler=sampler,
            clipping=Clipping(rule=self.clipping_rule(), schedule=self.clip_schedule),
            noise=GaussianNoise(
                multiplier=self.joint_noise_multiplier() or 1.0,
                releases=releases,
                schedule=self.noise_schedule,
            ),
            optimizer=self.optimizer(),
            learning_rate=self.learning_rate,
            learning_rate_schedule=self.learning_rate_schedule,
            average=self.average,
            releases=releases,
            **self.further_parts(sampler),
        )
        return fit_to_budget(
            draft,
            noise_is_given=self.noise_multiplier is not None,
            releases_are_given=(self.releases or self.epochs) is not None,
        )

    def further_parts(self, sampler: PoissonSampler) -> FurtherParts:
        """The parts of the plan that only some recipes have."""
        return {}

    def joint_noise_multiplier(self) -> float | None:
        """The noise over the sensitivity that the clipping rule states; None where it is left open."""
        return self.noise_multiplier

    def clipping_rule(self) -> ClippingRule:
        """The rule, before its schedule."""
        from discreet.gradients.clipping import (
            AutomaticClipping,
            FlatClipping,
            LayerClipping,
            ScaledClipping,
        )

        if self.scaling_bound is not None:
            return ScaledClipping(clip_norm=self.clip_norm, bound=self.scaling_bound)
        kinds: dict[str, type[FlatClipping | LayerClipping | AutomaticClipping]]
        kinds = {"flat": FlatClipping, "layer-wise": LayerClipping, "automatic": AutomaticClipping}
        return kinds[self.clipping](clip_norm=self.clip_norm)

    def to_json(self) -> dict[str, Any]:
        """The settings as plain values; `from_json` reads them back."""
        record = asdict(self)
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Schedule):
                record[field.name] = schedules.to_json(value)
        return record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """A recipe from plain values, as they stand in a configuration file; schedules may be given as text."""
        known = {field.name for field in fields(cls)}
        settings: dict[str, Any] = {}
        for name, value in record.items():
            if name not in known:
                raise UserError(
                    f"recipe {cls.name} has no setting {name!r}; it has {', '.join(sorted(known))}"
                )
            if name.endswith("_schedule"):
                value = schedules.parse(value) if isinstance(value, str) else schedules.from_json(value)
            settings[name] = tuple(value) if isinstance(value, list) else value
        return cls(**settings)


def require_positive(name: str, value: float | None) -> None:
    """Refuse a setting that is given and is not a finite number above 0."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise UserError(f"{name} is {value}; it is a finite number above 0")


def require_finite(name: str, value: float) -> None:
    """Refuse a setting that is infinite or not a number."""
    if not math.isfinite(value):
        raise UserError(f"{name} is {value}; it is a finite number")


def require_one_of(name: str, value: str, known: Sequence[str]) -> None:
    """Refuse a setting that is none of the words it can be."""
    if value not in known:
        raise UserError(f"{name} is {value!r}; it can be {', '.join(repr(each) for each in known)}")


def _at_least(name: str, value: float, least: int) -> None:
    if value < least:
        raise UserError(f"{name} is {value}; it is a whole number of at least {least}")

"""What is compared: methods on data sets, at epsilons, with seeds. Each combination is a cell: one training."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import product
from typing import Any, Self

from discreet.errors import UserError
from discreet.jobs.job import Job
from discreet.typed import require_types

_OWN = ("data", "epsilon", "seed", "recipe", "output", "claimed_epsilon")
"""What a cell says itself, so that no setting may."""
_ROOM = 8.0
"""How much more than the claimed epsilon a run may spend that is to end by the claimed one."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """A recipe with its settings, under the name that it has in the tables.

    Args:
        recipe: the recipe's name.
        label: the name in the tables; the recipe's, when left out.
        settings: settings of a training, as `discreet train --config` takes them; they win over those of the study.
        by_data: settings for some data sets, by the data set's name; they win over `settings`.
        grid: settings with several values to try. The tables show the best combination, and what choosing costs.
        claimed: whether an epsilon means what the method's paper claims; otherwise it is certified.
        matched: whether plain DP-SGD is trained beside it that costs the same: for a recipe with a memory, at the noise
            multiplier that it effectively has, and for as many releases.
    """

    recipe: str
    label: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    by_data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    grid: Mapping[str, Any] = field(default_factory=dict)
    claimed: bool = False
    matched: bool = False

    def __post_init__(self) -> None:
        from discreet.recipes import find
        from discreet.recipes.remembering import Remembering

        require_types(self)
        recipe = find(self.recipe)
        if self.matched and not issubclass(recipe, Remembering):
            raise UserError(f"{self.recipe} is to be matched, and has no memory: it is as private as it says")
        if not self.label:
            object.__setattr__(self, "label", f"{self.recipe}, claimed" if self.claimed else self.recipe)
        for settings in (self.settings, self.grid, *self.by_data.values()):
            _refuse_own(settings)
        for name, values in self.grid.items():
            if not isinstance(values, list | tuple) or not values:
                raise UserError(f"grid has {name} = {values!r}; it is a list of the values to try")

    def points(self) -> Iterator[dict[str, Any]]:
        """Every combination of the grid's values; one empty combination where there is no grid."""
        for values in product(*self.grid.values()):
            yield dict(zip(self.grid, values, strict=True))


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One training of a study.

    Attributes:
        method: the label of the method.
        data: the data set.
        epsilon: certified, or claimed.
        claimed: which of the two.
        seed: of all randomness, the start included: cells of one seed begin with the same weights.
        point: the values taken from the grid.
        settings: the training, as flat settings of a job.
        matched: whether it is the plain DP-SGD that costs what this training would.
    """

    method: str
    data: str
    epsilon: float
    claimed: bool
    seed: int
    point: Mapping[str, Any]
    settings: Mapping[str, Any]
    matched: bool = False

    @property
    def name(self) -> str:
        """The name of the cell's folder: short, and another one whenever a setting is another."""
        digest = hashlib.blake2b(json.dumps(asdict(self), sort_keys=True).encode(), digest_size=6).hexdigest()
        words = f"{self.method}-{self.data}-{self.epsilon:g}-{self.seed}"
        return (
            "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in words) + f"-{digest}"
        )

    def job(self) -> Job:
        """The training, with all that a preset says filled in."""
        return Job.from_settings(self.settings)


@dataclass(frozen=True, kw_only=True)
class Study:
    """A comparison.

    Args:
        methods: what is compared.
        data: on which data sets.
        epsilons: at which epsilons, all methods at each.
        seeds: how often, each time with other draws.
        settings: settings of every cell.
        by_data: settings of all cells on some data sets; they win over `settings`.
    """

    methods: Sequence[Method]
    data: Sequence[str]
    epsilons: Sequence[float]
    seeds: Sequence[int] = (1, 2, 3)
    settings: Mapping[str, Any] = field(default_factory=dict)
    by_data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("methods", "data", "epsilons", "seeds"):
            values = getattr(self, name)
            if not values:
                raise UserError(f"{name} is empty; a comparison needs at least one")
            said = [each.label for each in values] if name == "methods" else list(values)
            if len(set(said)) < len(said):
                raise UserError(f"{name} are {', '.join(map(str, said))}; each can be there once")
        for epsilon in self.epsilons:
            if not (isinstance(epsilon, int | float) and math.isfinite(epsilon) and epsilon > 0):
                raise UserError(f"epsilon is {epsilon!r}; it is a finite number above 0")
        for seed in self.seeds:
            if not isinstance(seed, int) or isinstance(seed, bool):
                raise UserError(f"seed is {seed!r}; it is a whole number")
        for settings in (self.settings, *self.by_data.values()):
            _refuse_own(settings)
        for by_data in (self.by_data, *(method.by_data for method in self.methods)):
            for name in by_data:
                if name not in self.data:
                    raise UserError(f"settings are given for {name!r}; the data are {', '.join(self.data)}")

    def cells(self) -> list[Cell]:
        """All trainings, the first seed of everything before the second."""
        return [
            cell
            for seed, data, epsilon, method in product(self.seeds, self.data, self.epsilons, self.methods)
            for point in method.points()
            for cell in self._cells(method, data, float(epsilon), seed, point)
        ]

    def _cells(
        self, method: Method, data: str, epsilon: float, seed: int, point: dict[str, Any]
    ) -> Iterator[Cell]:
        """A training, and the plain one that it is to be held against."""
        cell = self._cell(method, data, epsilon, seed, point)
        yield cell
        if method.matched:
            yield replace(cell, method=f"{method.label}: matched dp-sgd", matched=True)

    def _cell(self, method: Method, data: str, epsilon: float, seed: int, point: dict[str, Any]) -> Cell:
        settings = {
            "tensorboard": False,
            "threads": 1,
            **self.settings,
            **self.by_data.get(data, {}),
            **method.settings,
            **method.by_data.get(data, {}),
            **point,
            "data": data,
            "recipe": method.recipe,
            "seed": seed,
        }
        if method.claimed:
            settings |= {"claimed_epsilon": epsilon, "epsilon": _ROOM * epsilon}
        else:
            settings |= {"epsilon": epsilon}
        return Cell(
            method=method.label,
            data=data,
            epsilon=epsilon,
            claimed=method.claimed,
            seed=seed,
            point=point,
            settings=settings,
        )

    def check(self) -> None:
        """Refuse, before anything is computed, what can be seen to be wrong with a cell."""
        for cell in self.cells():
            try:
                job = cell.job()
                job.budget(), job.chosen_accounting(), job.feature_map()
                recipe = job.chosen_recipe()
            except UserError as error:
                raise UserError(f"{cell.method} on {cell.data}: {error}") from None
            if cell.claimed and recipe.noise_multiplier is None:
                raise UserError(
                    f"{cell.method} on {cell.data}: a run that ends at a claimed epsilon needs a noise_multiplier, its "
                    'own or that of the preset "paper"'
                )

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` takes."""
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """A study from plain values, as a TOML file holds them: `seeds` may say how many, and methods are tables."""
        known = {each.name for each in fields(cls)}
        if unknown := sorted(set(record) - known):
            raise UserError(f"a comparison has no {unknown[0]!r}; it has {', '.join(sorted(known))}")
        for name in ("methods", "data", "epsilons"):
            if name not in record:
                raise UserError(f"a comparison needs {name}")
        values = dict(record)
        if isinstance(values.get("seeds"), int):
            values["seeds"] = range(1, values["seeds"] + 1)
        for name in ("methods", "data", "epsilons", "seeds"):
            if name in values:
                values[name] = tuple(_listed(name, values[name]))
        values["methods"] = tuple(_method(each) for each in values["methods"])
        return cls(**values)


def _listed(name: str, values: Any) -> Sequence[Any]:
    if isinstance(values, list | tuple | range):
        return values
    raise UserError(f"{name} is {values!r}; it is a list")


def _method(record: Any) -> Method:
    """A method from a table: its own names, and any other one is a setting."""
    if not isinstance(record, Mapping) or "recipe" not in record:
        raise UserError(f"a method is {record!r}; it is a table with a recipe")
    own = {each.name for each in fields(Method)}
    settings = {name: value for name, value in record.items() if name not in own}
    return Method(
        **{name: value for name, value in record.items() if name in own and name != "settings"},
        settings={**record.get("settings", {}), **settings},
    )


def _refuse_own(settings: Mapping[str, Any]) -> None:
    for name in _OWN:
        if name in settings:
            raise UserError(f"{name} stands among the settings; a comparison sets it itself")

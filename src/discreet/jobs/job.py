"""What `discreet train` is asked for, as plain values that can be written down and read back."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from discreet.accounting import Accounting, Budget
from discreet.errors import UserError

if TYPE_CHECKING:
    from discreet.data import Splits
    from discreet.models import ModelSpec
    from discreet.recipes import FirstOrder


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training as a person asks for it. The command line and a TOML file use these names.

    Args:
        data: a named data set, or the path of a table, an npz file or an image folder.
        recipe: the recipe's name; `settings` are its settings.
        epsilon: the budget's epsilon.
        delta: the budget's delta.
        accounting: "visible" or "hidden".
        model: a network by name, with `model_options`; chosen to suit the data when left out.
        seed: makes the run repeatable, and its certificate no guarantee.
        data_folder: where data sets lie.
        target: the target column of a table.
        schema: the schema file of a table.
        image_size: the side that the images of a folder are scaled to.
        public: a file with records to show accuracy on; `declared` says what they are.
        size_is_public: whether the number of records is declared public.
        evaluation: whether accuracy on the evaluation records is looked at.
        marks: how often progress is told.
        checkpoint_seconds: time between two checkpoints.
        tensorboard: whether a TensorBoard log is written.
        device: where to compute.
        threads: processor threads.
        microbatch: records whose gradients are held at once.
    """

    data: str
    recipe: str = "dp-sgd"
    settings: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float = 3.0
    delta: float = 1e-5
    accounting: str = "visible"
    model: str | None = None
    model_options: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    data_folder: str | None = None
    target: str | None = None
    schema: str | None = None
    image_size: int = 32
    public: str | None = None
    declared: str | None = None
    size_is_public: bool = False
    evaluation: bool = True
    marks: int = 20
    checkpoint_seconds: float = 30.0
    tensorboard: bool = True
    device: str | None = None
    threads: int | None = None
    microbatch: int | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value, kind = getattr(self, each.name), _KINDS[str(each.type).removesuffix(" | None")]
            if value is None and "None" in str(each.type):
                continue
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                raise UserError(
                    f"{each.name} is {value!r}; it has to be {str(each.type).removesuffix(' | None')}"
                )
        if self.marks < 1:
            raise UserError(f"marks is {self.marks}; progress is told at least once")
        for name in ("threads", "microbatch"):
            if (getattr(self, name) or 1) < 1:
                raise UserError(f"{name} is {getattr(self, name)}; it is at least 1")

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """A job from flat settings: the job's own names, and any setting of its recipe."""
        own = {each.name for each in fields(cls)}
        job = {name: value for name, value in settings.items() if name in own}
        recipe = {name: value for name, value in settings.items() if name not in own}
        job["settings"] = {**job.get("settings", {}), **recipe}
        if "data" not in job:
            raise UserError("no data given: name a data set, a file or a folder (see discreet data list)")
        return cls(**job)

    def to_json(self) -> dict[str, Any]:
        """Plain values that `Job(**...)` takes."""
        return asdict(self)

    def budget(self) -> Budget:
        """The budget."""
        try:
            return Budget(epsilon=self.epsilon, delta=self.delta)
        except ValueError as error:
            raise UserError(str(error)) from None

    def chosen_accounting(self) -> Accounting:
        """The accounting."""
        if self.accounting not in ("visible", "hidden"):
            raise UserError(
                f'accounting is {self.accounting!r}; the certified ones are "visible" and "hidden"'
            )
        return Accounting(self.accounting)

    def chosen_recipe(self) -> FirstOrder:
        """The recipe with its settings."""
        from discreet.recipes import find

        return find(self.recipe).from_json(self.settings)

    def load(self) -> Splits:
        """Read the records."""
        from discreet.data import open_data

        return open_data(
            self.data,
            folder=None if self.data_folder is None else Path(self.data_folder),
            target=self.target,
            schema=None if self.schema is None else Path(self.schema),
            image_size=self.image_size,
            public=None if self.public is None else Path(self.public),
            declared=self.declared,
            size_is_public=self.size_is_public,
        )

    def network(self, splits: Splits) -> ModelSpec:
        """The network, by name, for these records."""
        from discreet.data import default_model
        from discreet.models import ModelSpec

        description = splits.description
        name = self.model or default_model(self.data, description)
        return ModelSpec(
            name=name,
            input_shape=description.input_shape,
            classes=description.classes,
            options=self.model_options,
        )


_KINDS: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
    "Mapping[str, Any]": Mapping,
}


def read_toml(path: Path) -> dict[str, Any]:
    """Settings from a TOML file; dashes in names are read as underscores."""
    try:
        with path.open("rb") as file:
            settings = tomllib.load(file)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    return {name.replace("-", "_"): value for name, value in settings.items()}

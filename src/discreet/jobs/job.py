"""What `discreet train` is asked for, as plain values that can be written down and read back."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from discreet.accounting import Accounting, Budget
from discreet.errors import CorruptFile, UserError
from discreet.jobs.presets import with_preset
from discreet.typed import misfits

if TYPE_CHECKING:
    from discreet.data import Declaration, Splits
    from discreet.features import FeatureMap
    from discreet.models import ModelSpec
    from discreet.plan import Plan
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
        assume_trials_secret: that number and timing of trials stay secret; "hidden" accounting rests on it.
        preset: "paper" for the settings that the recipe's paper publishes for these data; what is said beside it wins.
        features: public features of the inputs, by name, with `feature_options`; the inputs themselves when left out.
        feature_cache: whether features are kept on disk, so that they are computed once.
        model: a network by name, with `model_options`; chosen to suit the data when left out.
        seed: makes the run repeatable, and its certificate no guarantee.
        data_folder: where data sets lie.
        target: the target column of a table, or the array of targets in an npz file.
        inputs: the array of inputs in an npz file.
        schema: the schema file of a table.
        classes: the classes of an npz file or an image folder, how many or their names: "10", or "cat,dog".
        image_size: the side that the images of a folder are scaled to.
        channels: 3 to read the images of a folder in colour, 1 for grey.
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
    assume_trials_secret: bool = False
    preset: str | None = None
    features: str | None = None
    feature_options: Mapping[str, Any] = field(default_factory=dict)
    feature_cache: bool = True
    model: str | None = None
    model_options: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    data_folder: str | None = None
    target: str | None = None
    inputs: str | None = None
    schema: str | None = None
    classes: str | None = None
    image_size: int | None = None
    channels: int | None = None
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
        for name, value, right in misfits(self):
            raise UserError(f"{name} is {value!r}; it is {right}")
        for each in fields(self):
            _finite(each.name, getattr(self, each.name))
        for name in ("marks", "threads", "microbatch"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} is {value}; it is a whole number of at least 1")
        if self.checkpoint_seconds < 0:
            raise UserError(f"checkpoint_seconds is {self.checkpoint_seconds}; it is at least 0")

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """A job from flat settings: the job's own names, and any setting of its recipe."""
        own = {each.name for each in fields(cls)} - {"settings"}
        settings = with_preset(settings, {each.name: each.default for each in fields(cls)})
        job = {name: value for name, value in settings.items() if name in own}
        job["settings"] = {name: value for name, value in settings.items() if name not in own}
        if "data" not in job:
            raise UserError("no data given: name a data set, a file or a folder (see discreet data list)")
        if isinstance(job.get("classes"), list):
            job["classes"] = ",".join(str(name) for name in job["classes"])
        elif isinstance(job.get("classes"), int):
            job["classes"] = str(job["classes"])
        return cls(**job)

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """The job that `to_json` wrote."""
        unknown = sorted(set(record) - {each.name for each in fields(cls)})
        if unknown or "data" not in record:
            raise UserError(f"this version does not know {unknown[0]!r}" if unknown else "it names no data")
        return cls(**record)

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

    def require_secret_trials(self, plan: Plan) -> None:
        """Refuse a plan whose guarantee rests on secret trials that nobody has promised to keep."""
        if plan.hides_trials and not self.assume_trials_secret:
            raise UserError(
                'accounting "hidden" holds only if nobody learns how many trials there were, nor when: say so with '
                '--assume-trials-secret, or leave the accounting at "visible"'
            )

    def chosen_recipe(self) -> FirstOrder:
        """The recipe with its settings."""
        from discreet.recipes import find

        recipe = find(self.recipe)
        known = {each.name for each in fields(recipe)}
        others = {each.name for each in fields(self)} - {"settings", "model_options", "feature_options"}
        for name, value in self.settings.items():
            if name.endswith("_schedule") and not isinstance(value, str | Mapping):
                raise UserError(f"{name} is {value!r}; write it as in linear:end=0.1, or as a table")
            if name not in known:
                close = get_close_matches(name, [*known, *others], n=1)
                raise UserError(
                    f"there is no setting {name!r}"
                    + (f"; {close[0]} was perhaps meant" if close else "")
                    + f" (discreet recipes {self.recipe} lists the recipe's, discreet train --help the others)"
                )
        return recipe.from_json(self.settings)

    def declaration(self) -> Declaration:
        """What is declared about the records."""
        from discreet.data import Declaration
        from discreet.data.declaration import parse_classes

        return Declaration(
            target=self.target,
            inputs=self.inputs,
            schema=None if self.schema is None else Path(self.schema),
            classes=None if self.classes is None else parse_classes(self.classes),
            image_size=self.image_size,
            channels=self.channels,
            size_is_public=self.size_is_public,
        )

    def feature_map(self) -> FeatureMap | None:
        """The features, where some are asked for."""
        if self.features is None:
            if self.feature_options:
                raise UserError(
                    "feature_options are given, but no features; name some (see discreet train --help)"
                )
            return None
        from discreet.features import build

        return build(self.features, self.feature_options)

    def load(self) -> Splits:
        """Read the records, and turn them into the features that are asked for."""
        from discreet.data import open_data

        feature_map = self.feature_map()
        splits = open_data(
            self.data,
            self.declaration(),
            folder=None if self.data_folder is None else Path(self.data_folder),
            public=None if self.public is None else Path(self.public),
            declared=self.declared,
        )
        if feature_map is None:
            return splits
        from discreet.features import apply, feature_cache

        return apply(feature_map, splits, cache=feature_cache() if self.feature_cache else None)

    def network(self, splits: Splits) -> ModelSpec:
        """The network, by name, for these records."""
        from discreet.data import default_model
        from discreet.models import ModelSpec, default_name, options_of

        form = splits.description
        suited = default_model(self.data, form) if self.features is None else default_name(form.input_shape)
        name = self.model or suited
        options = dict(self.model_options)
        if form.vocabulary is not None and "vocabulary" in options_of(name):
            options.setdefault("vocabulary", form.vocabulary)
        return ModelSpec(name=name, input_shape=form.input_shape, classes=form.classes, options=options)


def job_of_run(folder: Path) -> Job:
    """The job that a run was made by.

    Raises:
        UserError: the run was made from Python, and its data are not known.
        CorruptFile: the folder does not hold what a run writes there.
    """
    from discreet.training.files import read_json
    from discreet.training.folder import RunFolder

    path = RunFolder.open(folder).settings
    record = read_json(path)
    if not isinstance(record, dict) or not isinstance(record.get("notes"), dict) or "plan" not in record:
        raise CorruptFile(f"{path} is not what a run writes there; the run cannot be resumed from it")
    if not isinstance(record["notes"].get("job"), dict):
        raise UserError(
            f"{folder} was not made by `discreet train`; resume it from Python with discreet.resume"
        )
    try:
        return Job.from_json(record["notes"]["job"])
    except UserError as error:
        raise CorruptFile(f"{path} does not hold a job that can be resumed: {error}") from None


def _finite(name: str, value: Any) -> None:
    """Refuse NaN and infinity wherever they hide: no setting has a use for them, and JSON cannot hold them."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _finite(key, item)
    elif isinstance(value, list | tuple):
        for item in value:
            _finite(name, item)
    elif isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{name} is {value}; it is a finite number")


def read_toml(path: Path) -> dict[str, Any]:
    """Settings from a TOML file; dashes in names are read as underscores."""
    try:
        with path.open("rb") as file:
            settings = tomllib.load(file)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    return {name.replace("-", "_"): value for name, value in settings.items()}

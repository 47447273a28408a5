"""Features of records: computed once, kept under a key of content and constants, and part of the schema."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from discreet.data import Description, Records, Splits
from discreet.errors import UserError
from discreet.features import FEATURES, FeatureMap, Scattering, apply, build, names
from discreet.features.apply import of_records

SomeImages = Callable[..., Records]


@dataclass(frozen=True, kw_only=True)
class Counted(FeatureMap):
    """Twice the inputs, and a count of how often it was computed."""

    name: ClassVar[str] = "counted"
    summary: ClassVar[str] = "for tests"
    calls: ClassVar[list[int]] = []

    factor: float = 2.0

    def made_for(self, form: Description) -> Callable[[Tensor], Tensor]:
        def features(inputs: Tensor) -> Tensor:
            self.calls.append(len(inputs))
            return self.factor * inputs.flatten(1)

        return features


@pytest.fixture(autouse=True)
def no_calls() -> None:
    Counted.calls.clear()


def computed() -> int:
    """How many records features were computed of, but for the one that shows their shape."""
    return sum(each for each in Counted.calls if each > 1)


def test_features_are_inputs_of_the_form_that_the_description_gives(splits: Splits) -> None:
    found = apply(Scattering(), splits)
    assert found.description.input_shape == (81, 3, 3)
    inputs, targets = found.train.batch(torch.tensor([3, 0]))
    assert inputs.dtype == torch.float32
    assert torch.equal(targets, splits.train.targets[[3, 0]])
    function = Scattering().made_for(splits.description)
    assert torch.allclose(inputs, function(splits.train.inputs[[3, 0]]), rtol=1e-3, atol=1e-5)
    assert found.public is not None
    assert len(found.public) == 8
    assert found.declared == "public"


def test_the_schema_tells_features_and_their_constants_apart(images: Records) -> None:
    plain, other = of_records(Scattering(), images), of_records(Scattering(groups=3), images)
    assert len({each.description.schema_hash for each in (images, plain, other)}) == 3
    assert plain.description.schema["of"] == images.description.schema


def test_features_are_computed_once(splits: Splits, tmp_path: Path) -> None:
    first = apply(Counted(), splits, cache=tmp_path)
    assert computed() == 20
    again = apply(Counted(), splits, cache=tmp_path)
    assert computed() == 20
    assert torch.equal(first.train.inputs, again.train.inputs)


@pytest.mark.parametrize("other", ["one pixel", "a constant", "the form"])
def test_other_records_or_constants_have_other_features(images: Records, tmp_path: Path, other: str) -> None:
    of_records(Counted(), images, cache=tmp_path)
    changed = images.inputs.clone()
    changed[5, 0, 3, 3] += 1 / 256 if other == "one pixel" else 0
    records = Records(changed, images.targets, images.description)
    if other == "the form":
        records = records.with_schema({"kind": "arrays"})
    found = of_records(Counted(factor=3.0 if other == "a constant" else 2.0), records, cache=tmp_path)
    assert computed() == 2 * len(images)
    assert len(list(tmp_path.iterdir())) == 2
    assert torch.allclose(found.inputs, (3 if other == "a constant" else 2) * changed.flatten(1), atol=1e-3)


def test_a_file_that_is_not_whole_is_made_again(images: Records, tmp_path: Path) -> None:
    whole = of_records(Counted(), images, cache=tmp_path).inputs
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-7])
    assert torch.equal(of_records(Counted(), images, cache=tmp_path).inputs, whole)
    assert computed() == 2 * len(images)


def test_a_computation_that_breaks_off_leaves_nothing(images: Records, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="too large for 16 bits"):
        of_records(Counted(factor=1e9), images, cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_kept_features_can_be_read_by_their_owner_alone(images: Records, tmp_path: Path) -> None:
    of_records(Counted(), images, cache=tmp_path / "features")
    (file,) = (tmp_path / "features").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert np.load(file).shape == (12, 144)


def test_features_by_name() -> None:
    assert build("scattering", {"groups": 9}) == Scattering(groups=9)
    assert set(names()) == FEATURES.keys()
    with pytest.raises(UserError, match="no features named 'wavelets'; there are scattering"):
        build("wavelets")
    with pytest.raises(UserError, match="no option 'group'; their options are scales=2"):
        build("scattering", {"group": 9})


def test_the_form_of_the_records_stays_as_it_was_declared(images: Records, some_images: SomeImages) -> None:
    declared = Records(images.inputs, images.targets, replace(images.description, size_is_public=True))
    assert of_records(Counted(), declared).description.size_is_public
    assert some_images().description.name == of_records(Counted(), images).description.name

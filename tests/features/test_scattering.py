"""Scattering features: the numbers are Kymatio's, and no record looks at another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from discreet.data import Records
from discreet.errors import UserError
from discreet.features import Scattering
from discreet.features.scattering import Transform

SomeImages = Callable[..., Records]
KYMATIO = np.load(Path(__file__).with_name("kymatio.npz"))
"""Images, and what `kymatio.torch.Scattering2D` of Kymatio 0.3.0 gives for them divided by 255."""
CASES = {"square": (2, 8), "oblong": (2, 8), "large": (2, 8), "deep": (3, 4), "coarse": (1, 3)}


def kymatio(name: str) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(KYMATIO[f"{name}_images"]), torch.from_numpy(KYMATIO[f"{name}_coefficients"])


def agrees(found: Tensor, expected: Tensor) -> bool:
    return found.shape == expected.shape and torch.allclose(found, expected, atol=5e-5)


@pytest.mark.parametrize("name", CASES)
def test_coefficients_are_those_of_kymatio(name: str) -> None:
    images, expected = kymatio(name)
    scales, angles = CASES[name]
    assert agrees(Transform((images.shape[1], images.shape[2]), scales, angles)(images / 255), expected)


@pytest.mark.parametrize(
    "fault", ["the order of channels", "a mirrored image", "a shift by a pixel", "scale"]
)
def test_coefficients_that_differ_from_kymatios_would_be_noticed(fault: str) -> None:
    images, expected = kymatio("square")
    scaled = images / (256 if fault == "scale" else 255)
    scaled = scaled.flip(2) if fault == "a mirrored image" else scaled
    scaled = scaled.roll(1, 2) if fault == "a shift by a pixel" else scaled
    found = Transform((16, 16), 2, 8)(scaled)
    assert not agrees(found.roll(1, 1) if fault == "the order of channels" else found, expected)


def test_records_of_bytes_go_from_zero_to_one_and_channels_stand_one_after_the_other(
    some_images: SomeImages,
) -> None:
    records = some_images(3, channels=3)
    plain = Scattering(groups=0)
    found = plain.made_for(records.description)(records.inputs)
    grey = Transform((12, 12), 2, 8)(((records.inputs + 1) / 2)[:, 1])
    assert found.shape == (3, 3 * 81, 3, 3)
    assert torch.allclose(found[:, 81:162], grey, atol=1e-6)


def test_every_record_is_normalised_by_itself(some_images: SomeImages) -> None:
    records = some_images(4)
    found = Scattering().made_for(records.description)(records.inputs)
    plain = (
        Scattering(groups=0).made_for(records.description)(records.inputs).unflatten(1, (27, 3)).flatten(2)
    )
    centred = plain - plain.mean(2, keepdim=True)
    deviation = (centred.square().mean(2, keepdim=True) + 1e-5).sqrt()
    assert torch.allclose(found.flatten(1), (centred / deviation).flatten(1), atol=1e-4)


def keeps_records_apart(features: object, records: Records) -> bool:
    assert callable(features)
    alone, beside = features(records.inputs[:1]), features(records.inputs)[:1]
    return torch.allclose(alone, beside, atol=1e-5)


def test_no_record_looks_at_another(some_images: SomeImages) -> None:
    records = some_images(4)
    features = Scattering().made_for(records.description)
    assert keeps_records_apart(features, records)
    assert not keeps_records_apart(lambda inputs: features(inputs) - features(inputs).mean(0), records)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"scales": 0}, "scales is 0; it has to be from 1 to 6"),
        ({"scales": 2.5}, "scales is 2.5; it has to be a whole number"),
        ({"angles": 0}, "angles is 0"),
        ({"groups": -1}, "groups is -1"),
        ({"groups": 10}, "groups is 10; it has to divide the 81 channels"),
        ({"scales": 4}, "12 x 12 are too small for 4 scales"),
    ],
)
def test_what_cannot_be_computed_is_refused(
    options: dict[str, int], problem: str, some_images: SomeImages
) -> None:
    with pytest.raises(UserError, match=problem):
        Scattering(**options).made_for(some_images().description)


def test_rows_of_numbers_have_no_scattering() -> None:
    rows = Records.from_arrays(np.zeros((4, 5), np.float32), [0, 1, 0, 1], classes=2)
    with pytest.raises(UserError, match=r"scattering is for images; the records have inputs of shape \(5,\)"):
        Scattering().made_for(rows.description)

"""The public face of a data set."""

import pytest

from discreet.data import Description


def describe(**changes: object) -> Description:
    settled = {"name": "toy", "classes": 2, "input_shape": (3,), "schema": {"bounds": [0, 1]}}
    return Description(**{**settled, **changes})  # type: ignore[arg-type]


def test_the_schema_hash_is_the_same_for_the_same_form_under_another_name() -> None:
    assert describe().schema_hash == describe().renamed("other").schema_hash


def test_the_schema_hash_does_not_see_sizes_or_facts() -> None:
    assert describe().schema_hash == describe(size_is_public=True, public_facts=("a fact",)).schema_hash


@pytest.mark.parametrize(
    "change",
    [
        {"classes": 3},
        {"input_shape": (4,)},
        {"schema": {"bounds": [0, 2]}},
        {"class_names": ("no", "yes")},
        {"input_dtype": "int64", "vocabulary": 7},
    ],
)
def test_the_schema_hash_sees_every_part_of_the_form(change: dict[str, object]) -> None:
    assert describe().schema_hash != describe(**change).schema_hash


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"classes": 1}, "at least 2"),
        ({"task": "regression"}, "task is 'regression'"),
        ({"input_dtype": "float16"}, "input_dtype is 'float16'"),
        ({"input_shape": (3, 0)}, "at least 1"),
        ({"class_names": ("one",)}, "1 names for 2 classes"),
        ({"vocabulary": 10}, "token inputs"),
        ({"input_dtype": "int64"}, "token inputs"),
    ],
)
def test_a_form_that_cannot_be_is_refused(change: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        describe(**change)

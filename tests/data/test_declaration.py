"""What is declared about files, and that nothing declared is passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.data.declaration import Declaration, parse_classes
from discreet.errors import UserError


@pytest.mark.parametrize(
    ("text", "classes"),
    [("10", 10), (" 2 ", 2), ("cat,dog", ("cat", "dog")), ("a, b c ,d", ("a", "b c", "d"))],
)
def test_classes_on_one_line(text: str, classes: object) -> None:
    assert parse_classes(text) == classes


@pytest.mark.parametrize("text", ["", "a,", ",", "a,,b"])
def test_classes_without_a_name_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="with commas between"):
        parse_classes(text)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"image_size": 0}, "image_size is 0"),
        ({"channels": 2}, "channels is 2"),
        ({"classes": 1}, "classes declares 1"),
        ({"classes": ("a",)}, "classes declares 1"),
        ({"classes": ("a", "a")}, "names one class twice"),
    ],
)
def test_impossible_declarations_are_refused(facts: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        Declaration(**facts)  # type: ignore[arg-type]


def test_what_has_no_meaning_is_refused_by_its_name() -> None:
    said = Declaration(schema=Path("s.toml"), size_is_public=True)
    said.allow("schema", "size_is_public", kind="a table")
    with pytest.raises(
        UserError, match="schema has no meaning for an npz file, which can have size_is_public"
    ):
        said.allow("size_is_public", kind="an npz file")


def test_nothing_declared_suits_everything() -> None:
    Declaration().allow(kind="anything")

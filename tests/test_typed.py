from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from discreet.errors import UserError
from discreet.typed import require_types


@dataclass(frozen=True, kw_only=True)
class Settings:
    count: int = 1
    rate: float = 0.5
    name: str | None = None
    flag: bool = False
    pair: tuple[float, float] = (0.1, 0.9)
    names: tuple[str, ...] = ()
    classes: int | tuple[str, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@pytest.mark.parametrize(
    "right",
    [
        {},
        {"rate": 2},
        {"name": "a"},
        {"pair": (1, 2)},
        {"names": ("a", "b", "c")},
        {"classes": 3},
        {"classes": ("a", "b")},
        {"options": {"a": [1]}},
    ],
)
def test_what_fits_passes(right):
    require_types(Settings(**right))


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"count": True}, "count is True; it has to be a whole number"),
        ({"count": 1.0}, "count is 1.0; it has to be a whole number"),
        ({"rate": "fast"}, "rate is 'fast'; it has to be a number"),
        ({"rate": None}, "rate is None"),
        ({"name": 3}, "name is 3; it has to be a text"),
        ({"flag": 1}, "true or false"),
        ({"pair": 3}, "pair is 3; it has to be 2 values, each a number"),
        ({"pair": (1.0,)}, "2 values"),
        ({"names": ("a", 1)}, "a list"),
        ({"classes": 1.5}, "a whole number or a list"),
        ({"options": 3}, "a table"),
    ],
)
def test_what_does_not_fit_is_named(wrong, complaint):
    with pytest.raises(UserError) as refusal:
        require_types(Settings(**wrong))
    assert complaint in str(refusal.value)

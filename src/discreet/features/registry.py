"""Feature maps by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from discreet.errors import UserError
from discreet.features.feature_map import FeatureMap
from discreet.features.random_filters import RandomFilters
from discreet.features.scattering import Scattering

FEATURES: Mapping[str, type[FeatureMap]] = {known.name: known for known in (Scattering, RandomFilters)}


def names() -> tuple[str, ...]:
    """All names that `build` takes."""
    return tuple(FEATURES)


def build(name: str, options: Mapping[str, Any] | None = None) -> FeatureMap:
    """The feature map called `name`.

    Raises:
        UserError: Unknown name or option, or an option that cannot be.
    """
    if name not in FEATURES:
        raise UserError(f"there are no features named {name!r}; there are {', '.join(FEATURES)}")
    known = {each.name: each.default for each in fields(FEATURES[name])}
    for option in options or {}:
        if option not in known:
            listed = ", ".join(f"{key}={default!r}" for key, default in known.items()) or "none"
            raise UserError(f"features {name} have no option {option!r}; their options are {listed}")
    return FEATURES[name](**(options or {}))

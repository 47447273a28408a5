"""Presets: settings of a training by name, for the data, the recipe and the epsilon that it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.errors import UserError

NAMES = ("paper",)


def with_preset(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The settings given, and beneath them those of the preset that they name, if they name one."""
    if given.get("preset") is None:
        return dict(given)
    asked = {**defaults, **given}
    # A paper's settings belong to the epsilon that the paper claims, where the run is to end by that.
    epsilon = asked.get("claimed_epsilon") or asked["epsilon"]
    return {
        **settings_of(asked["preset"], data=asked["data"], recipe=asked["recipe"], epsilon=epsilon),
        **given,
    }


def settings_of(name: str, *, data: str, recipe: str, epsilon: float) -> dict[str, Any]:
    """The settings of a preset, by the names that a training knows them by.

    Args:
        name: the preset.
        data: the data set's name.
        recipe: the recipe's name.
        epsilon: the budget, or what is to be claimed; the preset of the nearest epsilon is taken.
    """
    if name not in NAMES:
        raise UserError(f"preset is {name!r}; it can be {', '.join(NAMES)}")
    from discreet.recipes import find

    presets = find(recipe).presets
    if data not in presets:
        known = ", ".join(presets) or "no data set"
        raise UserError(f"recipe {recipe} has no preset {name!r} for {data}; it has one for {known}")
    by_epsilon = presets[data]
    return dict(by_epsilon[min(by_epsilon, key=lambda each: abs(each - epsilon))])

"""Settings that papers publish, by data set and epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Settings = Mapping[str, Any]
Presets = Mapping[str, Mapping[float, Settings]]
"""Data set, then the epsilon that the paper names, then settings: the recipe's, or others of a training."""

EPSILONS = (1.0, 2.0, 3.0, 4.0)

# What DPSUR and those that build on it share (arXiv 2311.14056, section 6.1 and the authors' run.sh).
IMAGES: Settings = {"clip_norm": 0.1, "momentum": 0.9}
TEXTS: Settings = {
    "clip_norm": 0.1,
    "torch_optimizer": "Adam",
    "learning_rate": 0.02,
    "model": "lstm-imdb",
}


def across(
    shared: Settings, *, epsilons: Sequence[float] = EPSILONS, **each: Sequence[Any]
) -> Mapping[float, Settings]:
    """The same settings at every epsilon, and beside them one value of each list."""
    rows = zip(*each.values(), strict=True) if each else [() for _ in epsilons]
    return {
        epsilon: {**shared, **dict(zip(each, row, strict=True))}
        for epsilon, row in zip(epsilons, rows, strict=True)
    }

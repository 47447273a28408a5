"""Features: fixed, public functions of one record at a time, by name."""

from __future__ import annotations

from discreet.features.apply import apply, feature_cache
from discreet.features.feature_map import FeatureMap
from discreet.features.random_filters import RandomFilters
from discreet.features.registry import FEATURES, build, names
from discreet.features.scattering import Scattering

__all__ = [
    "FEATURES",
    "FeatureMap",
    "RandomFilters",
    "Scattering",
    "apply",
    "build",
    "feature_cache",
    "names",
]

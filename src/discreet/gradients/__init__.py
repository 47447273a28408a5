"""Clipped sums of per-record gradients: the engine, one rule per kind of layer, the clipping rules."""

from discreet.gradients.clipping import (
    AutomaticClipping,
    ClippingRule,
    FlatClipping,
    GlobalClipping,
    LayerClipping,
    ScaledClipping,
)
from discreet.gradients.engine import ClipReport, GradientEngine
from discreet.gradients.inspect import probe_independence, refuse_mixing_modules
from discreet.gradients.layout import FlatLayout
from discreet.gradients.private import Private

__all__ = [
    "AutomaticClipping",
    "ClipReport",
    "ClippingRule",
    "FlatClipping",
    "FlatLayout",
    "GlobalClipping",
    "GradientEngine",
    "LayerClipping",
    "Private",
    "ScaledClipping",
    "probe_independence",
    "refuse_mixing_modules",
]

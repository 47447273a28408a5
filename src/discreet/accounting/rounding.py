"""Printed bounds: never below the computed ones."""

from __future__ import annotations

import math


def rounded_up(value: float | None, decimals: int = 4) -> str:
    """A bound in so many decimals, rounded up; `None` and infinity are "infinite"."""
    if value is None or not math.isfinite(value):
        return "infinite"
    scale = 10**decimals
    return f"{math.ceil(value * scale) / scale:.{decimals}f}"

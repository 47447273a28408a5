"""Numbers for people: guarantees are only ever rounded to the careful side, axes fall on round values."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal


def at_most(value: float, digits: int = 4) -> str:
    """A bound with so many significant digits, rounded up: what is printed is still a bound."""
    if not math.isfinite(value):
        return "infinite"
    if value == 0:
        return "0"
    exact = Decimal(repr(float(value)))
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return plain(float(exact.quantize(step, rounding=ROUND_CEILING)))


def plain(value: float) -> str:
    """A number as short as it can be written, with thousands set apart."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1e-3:
        return f"{value:.10g}"
    mantissa, _, exponent = f"{value:.6e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def percent(share: float) -> str:
    """A share as a percentage with one decimal."""
    return f"{share:.1%}"


def duration(seconds: float) -> str:
    """A time in the units that suit it."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round values that cover the interval from `low` to `high`."""
    if high - low <= 1e-6 * max(abs(low), abs(high), 1e-6):
        low, high = (low - 0.1 * abs(low), low + 0.1 * abs(low)) if abs(low) > 1e-6 else (0.0, 1.0)
    rough = (high - low) / max(1, count)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    # 3 * 0.2 is a hair above 0.6, and a label that is rounded up would show it.
    return [round(number * step, 12 - math.floor(math.log10(step))) for number in range(first, last + 1)]

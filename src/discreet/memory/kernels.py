"""How much each past release weighs: kernels over the lags 1, 2, ..., normalised to the sum 1."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from discreet.errors import UserError

KERNELS = ("fractional", "tempered", "uniform", "exponential", "none")


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """The raw weights a_j = (j + 1)^(alpha - 1) exp(-lambda j) of the releases j steps back.

    Attributes:
        order: alpha, in (0, 1]; 1 leaves out the power law.
        tempering: lambda, at least 0; 0 leaves out the exponential.
    """

    order: float = 1.0
    tempering: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.order <= 1.0:
            raise UserError(f"order is {self.order}; the fractional order lies in (0, 1]")
        if not (math.isfinite(self.tempering) and self.tempering >= 0.0):
            raise UserError(f"tempering is {self.tempering}; it is a finite number of at least 0")

    def weights(self, lags: int) -> list[float]:
        """The normalised weights of the lags 1 to `lags`, the newest first."""
        # Over that of lag 1, which is the largest: no weight of a strongly tempered kernel is 0 / 0.
        raw = [
            (0.5 * (lag + 1)) ** (self.order - 1.0) * math.exp(-self.tempering * (lag - 1))
            for lag in range(1, lags + 1)
        ]
        total = sum(raw)
        return [each / total for each in raw]


def depth(weights: list[float]) -> float:
    """The effective depth of a memory with these normalised weights: the mean lag; 0 where there is no lag."""
    return sum(lag * weight for lag, weight in enumerate(weights, start=1))


def kernel(name: str, *, order: float, tempering: float) -> Kernel | None:
    """The kernel of that name, one of `KERNELS`; None for "none".

    Args:
        name: "fractional" (order alone), "tempered" (both), "exponential" (tempering alone), "uniform" (neither).
        order: alpha.
        tempering: lambda.
    """
    if name not in KERNELS:
        raise UserError(f"kernel is {name!r}; it can be {', '.join(repr(each) for each in KERNELS)}")
    whole = Kernel(order=order, tempering=tempering)
    kernels = {
        "fractional": replace(whole, tempering=0.0),
        "tempered": whole,
        "uniform": Kernel(),
        "exponential": replace(whole, order=1.0),
    }
    return kernels.get(name)

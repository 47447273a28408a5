"""The spectral memory of SMA-DP-SGD: each layer looks back as far as its weights' spectrum suggests."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from discreet.errors import UserError
from discreet.memory.kernels import Kernel, depth
from discreet.memory.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor

    from discreet.gradients.layout import FlatLayout
    from discreet.memory.groups import Group
    from discreet.memory.recollection import Recollection
    from discreet.noise.gaussian import Released


@dataclass(frozen=True, kw_only=True)
class SpectralMemory(Memory):
    """A memory by layer, tempered by the layer's spectrum, gated by alignment, and matched in norm.

    With rho the power-law exponent of a layer's weight matrix, d its distance from the interval, and mu the moving
    average of the layer's releases:

        lambda = 1 - exp(-c d)
        nu     = sum_j a_j s~_(t-j), with the kernel at order alpha and tempering lambda
        Gamma  = max(0, <mu, nu> / (|mu| |nu| + eps)),   Psi = min(xi, |mu| / (|nu| + eps))
        s~_t   = (beta s_t + noise) + (1 - beta) (1 - exp(-t / tau)) Gamma Psi nu

    A layer without a weight matrix, such as a normalisation, has no exponent and is not tempered.

    Attributes:
        order: alpha, of the kernel.
        interval: I_rho, the exponents that temper nothing.
        tempering_strength: c_lambda, at least 0; 0 tempers nothing.
        trend_recency: gamma_ema, in (0, 1]: what the newest release weighs in the trend.
        norm_cap: xi_max, the most that norm matching may multiply by.
        warm_up: tau_warm, in releases.
        stability: eps, the smallest denominator.
        spectrum_every: the exponents are computed anew at every so many releases.
    """

    kind: ClassVar[str] = "spectral"

    order: float
    interval: tuple[float, float]
    tempering_strength: float
    trend_recency: float
    norm_cap: float
    warm_up: float
    stability: float
    spectrum_every: int

    def __post_init__(self) -> None:
        super().__post_init__()
        Kernel(order=self.order)
        low, high = self.interval
        if not 1.0 <= low <= high:
            raise UserError(f"interval is {self.interval}; it goes up from at least 1, as exponents do")
        if not 0.0 < self.trend_recency <= 1.0:
            raise UserError(f"trend_recency is {self.trend_recency}; the trend's recency lies in (0, 1]")
        if self.spectrum_every < 1:
            raise UserError(f"spectrum_every is {self.spectrum_every}; it is a whole number of at least 1")
        for name in ("norm_cap", "warm_up", "stability"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0.0):
                raise UserError(f"{name} is {getattr(self, name)}; it is a finite number above 0")
        if not (math.isfinite(self.tempering_strength) and self.tempering_strength >= 0.0):
            raise UserError(
                f"tempering_strength is {self.tempering_strength}; it is a finite number of at least 0"
            )

    def start(self, layout: FlatLayout) -> Recollection:
        """An empty ring, and one group per layer."""
        import torch

        from discreet.memory.groups import layers
        from discreet.memory.recollection import Recollection

        flat, groups = layout.zeros(), layers(layout)
        return Recollection(
            past=flat.new_zeros(self.lags, layout.size),
            branch=flat,
            groups=groups,
            trend=layout.zeros(),
            exponents=torch.full((len(groups),), math.nan, dtype=torch.float64),
        )

    def tempering(self, exponent: float) -> float:
        """Lambda of a layer with that exponent; 0 for one that has none."""
        low, high = self.interval
        distance = max(0.0, low - exponent, exponent - high)
        # Of an infinite exponent and no strength the product is not a number.
        strong = self.tempering_strength > 0.0 and not math.isnan(exponent)
        return -math.expm1(-self.tempering_strength * distance) if strong else 0.0

    def blend_(self, release: Released, recollection: Recollection, *, weights: Released) -> dict[str, float]:
        """Add each layer's share of what is remembered, and follow the trend."""
        if not self.lags:
            return {}
        number, told = recollection.remembered, {}
        if number > 0:
            if (number - 1) % self.spectrum_every == 0:
                self._look_at(weights, recollection)
            told = self._add_branches(release, recollection)
        assert recollection.trend is not None
        recollection.trend.lerp_(release, self.trend_recency if number > 0 else 1.0)
        recollection.remember(release)
        return told

    def _look_at(self, weights: Released, recollection: Recollection) -> None:
        from discreet.memory.spectrum import exponent

        assert recollection.exponents is not None
        for place, group in enumerate(recollection.groups):
            if group.matrix is not None:
                recollection.exponents[place] = exponent(weights[group.matrix].view(group.shape))

    def _add_branches(self, release: Released, recollection: Recollection) -> dict[str, float]:
        assert recollection.exponents is not None
        warmth = -math.expm1(-recollection.remembered / self.warm_up)
        kernel = Kernel(order=self.order)
        exponents = recollection.exponents.tolist()
        temperings = [self.tempering(each) for each in exponents]
        depths, ratios = [], []
        for group, tempering in zip(recollection.groups, temperings, strict=True):
            shares = replace(kernel, tempering=tempering).weights(recollection.held)
            memory, part = recollection.mix(shares, group.span), release[group.span]
            share, norm = self._scale(recollection, group, memory)
            share *= (1.0 - self.fresh_weight) * warmth
            part.add_(memory, alpha=share)
            blended = float(part.norm())
            depths.append(depth(shares))
            ratios.append(share * norm / blended if blended > 0.0 else 0.0)
        return {
            "memory depth": sum(depths) / len(depths),
            "memory ratio": sum(ratios) / len(ratios),
            **_by_stage("rho", recollection.groups, exponents, exponents),
            **_by_stage("lambda", recollection.groups, temperings, exponents),
        }

    def _scale(self, recollection: Recollection, group: Group, memory: Tensor) -> tuple[float, float]:
        """Gamma times Psi, and the norm of nu."""
        import torch

        assert recollection.trend is not None
        trend = recollection.trend[group.span]
        trend_norm, norm = float(trend.norm()), float(memory.norm())
        gate = float(torch.dot(trend, memory)) / (trend_norm * norm + self.stability)
        matched = min(self.norm_cap, trend_norm / (norm + self.stability))
        # At most 1 by Cauchy and Schwarz, and a little more by rounding.
        return min(max(0.0, gate), 1.0) * matched, norm


def _by_stage(
    what: str, groups: Iterable[Group], values: Iterable[float], exponents: Iterable[float]
) -> dict[str, float]:
    """The mean over the layers of each stage that have a finite exponent."""
    stages: dict[str, list[float]] = defaultdict(list)
    for group, value, exponent in zip(groups, values, exponents, strict=True):
        if math.isfinite(exponent):
            stages[group.stage].append(value)
    return {f"{what} {stage}": sum(members) / len(members) for stage, members in stages.items()}

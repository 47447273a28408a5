"""SMA-DP-SGD: a memory by layer, as deep as the spectrum of the layer's weights suggests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from discreet.accounting import joint_multiplier
from discreet.errors import UserError
from discreet.memory import SpectralMemory
from discreet.recipes.first_order import FirstOrder
from discreet.recipes.presets import Presets, across
from discreet.recipes.remembering import Remembering

if TYPE_CHECKING:
    from discreet.gradients.clipping import ClippingRule

_GROUP_WISE = "group-wise"


@dataclass(frozen=True, kw_only=True)
class SMADPSGD(Remembering):
    """Spectral memory-aware differentially private SGD.

    Args:
        clipping: "layer-wise" as in all recipes: `clip_norm` and `noise_multiplier` are those of the whole release;
            "group-wise" is the same in the paper's units: both are each layer's, and the whole release is charged at
            sigma / (beta sqrt(G)); "flat" keeps the memory and clips whole gradients; or the others of dp-sgd.
        groups: G, the number of the model's layers, for "group-wise" clipping; a model with another number is refused.
        interval: I_rho; a layer whose power-law exponent lies in it forgets by the fractional kernel alone.
        tempering_strength: c_lambda; how strongly the distance from the interval shortens a layer's memory.
        trend_recency: gamma_ema, what the newest release weighs in the trend that the memory is held against.
        norm_cap: xi_max, the most that the memory is lengthened to match the trend.
        warm_up: tau_warm, in releases: the memory's share is 1 - exp(-t / tau).
        stability: epsilon, added to denominators.
        spectrum_every: r; exponents are computed anew at every r-th release.
    """

    name: ClassVar[str] = "sma-dp-sgd"
    summary: ClassVar[str] = (
        "a memory of past releases by layer, as deep as the spectrum of its weights suggests"
    )
    paper: ClassVar[str] = (
        "Partohaghighi and Marcia, SMA-DP: Spectral Memory-Aware Differential Privacy, 2026"
    )
    presets: ClassVar[Presets] = {
        # Table 1 of the paper, its final-accuracy setting. It prints no epsilon, sigma, C, B or learning rate.
        "cifar-10": across({"fresh_weight": 0.95, "order": 0.7, "window": 4, "interval": (2.0, 6.0)}),
    }
    clippings: ClassVar[tuple[str, ...]] = (*FirstOrder.clippings, _GROUP_WISE)

    clipping: str = "layer-wise"
    groups: int | None = None
    interval: tuple[float, float] = (2.0, 6.0)
    tempering_strength: float = 0.5
    trend_recency: float = 0.2
    norm_cap: float = 2.0
    warm_up: float = 20.0
    stability: float = 1e-12
    spectrum_every: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.clipping == _GROUP_WISE) != (self.groups is not None):
            raise UserError('"group-wise" clipping and groups belong together; give both or neither')
        if self.groups is not None and self.groups < 1:
            raise UserError(f"groups is {self.groups}; it is the number of the model's layers, at least 1")

    def joint_noise_multiplier(self) -> float | None:
        """Sigma; for group-wise clipping sigma_g / sqrt(G), as one record moves all groups at once."""
        if self.noise_multiplier is None or self.groups is None:
            return self.noise_multiplier
        return joint_multiplier([self.noise_multiplier] * self.groups)

    def clipping_rule(self) -> ClippingRule:
        """The rule; for group-wise clipping the joint norm is C_g sqrt(G)."""
        from discreet.gradients.clipping import LayerClipping

        if self.groups is None:
            return super().clipping_rule()
        return LayerClipping(clip_norm=self.clip_norm * math.sqrt(self.groups), count=self.groups)

    def memory(self) -> SpectralMemory:
        """The memory."""
        return SpectralMemory(
            fresh_weight=self.fresh_weight,
            window=self.window,
            order=self.order,
            interval=self.interval,
            tempering_strength=self.tempering_strength,
            trend_recency=self.trend_recency,
            norm_cap=self.norm_cap,
            warm_up=self.warm_up,
            stability=self.stability,
            spectrum_every=self.spectrum_every,
        )

"""Gaussian noise from a keyed stream, made in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NewType

from discreet.schedules import Constant, Schedule

if TYPE_CHECKING:
    from torch import Tensor

    from discreet.noise.key import Stream

Released = NewType("Released", "Tensor")
"""A tensor that depends on private records through charged, noisy releases only, so that it may be looked at.

`add_gaussian_` gives them. What is computed from them alone is one as well; whoever says so says it by this name.
"""

_CHUNK = 1 << 16  # values made at a time: words, radii and angles then stay in the cache


@dataclass(frozen=True, kw_only=True)
class GaussianNoise:
    """Independent Gaussian noise on every coordinate of a clipped sum.

    The noise multiplier at release n is `multiplier * schedule.at(n)`; the standard deviation is that times the
    sensitivity which the clipping rule states. `releases` is the planned number, a public constant.
    """

    multiplier: float
    releases: int
    schedule: Schedule = Constant()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.multiplier) and self.multiplier > 0):
            raise ValueError(
                f"multiplier is {self.multiplier}; without noise there is no privacy: it is above 0"
            )

    def multiplier_at(self, release: int) -> float:
        """Standard deviation over sensitivity, for one release."""
        return self.multiplier * self.schedule.at(release, self.releases)


def standard_normal(stream: Stream, count: int) -> Tensor:
    """`count` independent N(0, 1) values in float64, by the Box-Muller transform.

    The radius comes from a uniform of 63 bits, so the tails reach 9.4 standard deviations; what is cut off has
    probability below 2**-63 per value.
    """
    import torch

    pairs = (count + 1) // 2
    words = stream.words(2 * pairs)
    uniform = (words[:pairs] & (2**63 - 1)).to(torch.float64).add_(0.5).mul_(2.0**-63)
    radius = uniform.log_().mul_(-2.0).clamp_(min=0.0).sqrt_()
    angle = words[pairs:].to(torch.float64).mul_(math.pi * 2.0**-63)
    values = torch.empty(2 * pairs, dtype=torch.float64)
    torch.cos(angle, out=values[:pairs]).mul_(radius)
    torch.sin(angle, out=values[pairs:]).mul_(radius)
    return values[:count]


def add_gaussian_(vector: Tensor, stddev: float, stream: Stream) -> Released:
    """Add N(0, stddev**2) to every entry of a flat vector, in place.

    The sum is formed in float64 and rounded once to the vector's type: rounding is post-processing of the noisy
    value. See the floating-point part of the threat model in docs/guarantees.md.
    """
    import torch

    for start in range(0, vector.numel(), _CHUNK):
        part = vector[start : start + _CHUNK]
        noise = standard_normal(stream, part.numel()).mul_(stddev).to(part.device)
        part.copy_(noise.add_(part.to(torch.float64)))
    return Released(vector)

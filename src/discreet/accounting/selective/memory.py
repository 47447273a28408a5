"""Private memory (FO-DP-SGD, SMA-DP-SGD): a release that is a blend of the fresh sum and of past releases.

Theorem memory. s~ = beta s + b(history) + N(0, sigma^2 C^2), with b a function of released history only and clipping
before the blend, is beta times [s + N(0, (sigma / beta)^2 C^2)] plus something known: post-processing of plain DP-SGD
with the multiplier sigma / beta, and the other way round. So the plain accounting at that multiplier is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from discreet.accounting.events import checked_number, joint_multiplier


def memory_multiplier(noise_multiplier: float, fresh_weight: float) -> float:
    """The multiplier of the equivalent plain release, sigma / beta.

    Args:
        noise_multiplier: sigma, of the noise added to the blend.
        fresh_weight: beta > 0, the weight of the fresh clipped sum.
    """
    sigma = checked_number("noise_multiplier", noise_multiplier, low=0.0, open_low=True)
    return sigma / checked_number("fresh_weight", fresh_weight, low=0.0, open_low=True)


def grouped_memory_multiplier(noise_multipliers: Sequence[float], fresh_weight: float) -> float:
    """The joint multiplier of layer groups clipped and noised apart, 1 / (beta sqrt(sum of sigma_g^-2)).

    One record moves every group at once, so the ratio of a single group, sigma_g / beta, is never the model's.
    """
    return memory_multiplier(joint_multiplier(noise_multipliers), fresh_weight)


def required_noise_multiplier(plain_multiplier: float, fresh_weight: float, groups: int = 1) -> float:
    """The sigma of each of `groups` equal groups that makes a blend as private as the plain multiplier."""
    if groups < 1:
        raise ValueError(f"groups must be at least 1, not {groups!r}")
    plain = checked_number("plain_multiplier", plain_multiplier, low=0.0, open_low=True)
    beta = checked_number("fresh_weight", fresh_weight, low=0.0, open_low=True)
    return plain * beta * math.sqrt(groups)

"""The power law of a matrix's spectrum: which exponent its largest eigenvalues follow.

The exponent is that of Clauset, Shalizi and Newman (SIAM Review 51(4), 2009): for each possible start of the tail the
maximum likelihood exponent, and of all starts the one whose tail lies nearest to its power law by Kolmogorov and
Smirnov. WeightWatcher and the `powerlaw` package do it that way.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_ENTRIES_AT_ONCE = 1 << 18
"""Of the table of starts by eigenvalues; larger pieces leave the cache."""


def exponent(matrix: Tensor) -> float:
    """The power-law exponent of the eigenvalues of W^T W; NaN where there are fewer than 3 positive, finite ones."""
    largest = float(matrix.detach().abs().max())
    if not (math.isfinite(largest) and largest > 0.0):
        return math.nan
    # The exponent does not depend on the scale, and the squares of large entries would overflow.
    return power_law(eigenvalues(matrix.detach().to(torch.float64) / largest))


def eigenvalues(matrix: Tensor) -> Tensor:
    """The positive eigenvalues of W^T W in float64, ascending, by way of the smaller of W^T W and W W^T."""
    wide = matrix.detach().to(torch.float64)
    if wide.shape[0] > wide.shape[1]:
        wide = wide.t()
    values = torch.linalg.eigvalsh(wide @ wide.t())
    # What rounding makes of the zeros of a matrix without full rank.
    positive: Tensor = values[values > values[-1] * len(values) * torch.finfo(values.dtype).eps]
    return positive


def power_law(values: Tensor) -> float:
    """The exponent of the tail of ascending positive values; NaN for fewer than 3, infinite where all are equal."""
    count = len(values)
    if count < 3:
        return math.nan
    logs = values.log()
    places = torch.arange(count, dtype=values.dtype, device=values.device)
    tails = count - places[:-1]
    # The last value alone is no tail, and of equal values only the first is a start.
    excess = (logs.flip(0).cumsum(0).flip(0) - (count - places) * logs)[:-1]
    exponents = 1.0 + tails / excess.clamp(min=0.0)
    starts = torch.cat([logs.new_ones(1, dtype=torch.bool), logs.diff() > 0])[:-1].nonzero().squeeze(1)
    below = torch.searchsorted(logs, logs).to(values.dtype)
    distances = torch.cat(
        [
            _distances(logs, below, tails, exponents, part)
            for part in torch.split(starts, max(1, _ENTRIES_AT_ONCE // count))
        ]
    )
    return float(exponents[starts[distances.argmin()]])


def _distances(logs: Tensor, below: Tensor, tails: Tensor, exponents: Tensor, starts: Tensor) -> Tensor:
    """How far, at most, the share of a tail that is below each value is from what the power law says, per start."""
    gaps = logs - logs[starts, None]
    model = -torch.expm1(gaps.mul_(1.0 - exponents[starts, None]))
    seen = (below - below[starts, None]).div_(tails[starts, None])
    # Before a start both are below 0, and no part of its tail. An infinite exponent is nearest to nothing.
    inside = torch.arange(len(logs), device=logs.device) >= starts[:, None]
    apart = model.sub_(seen).abs_().where(inside, 0.0)
    return apart.amax(dim=1).nan_to_num_(nan=math.inf)

"""Gates on the training batch itself, when another direction of w tells the batches apart.

D's records move the sum along e_2, x moves it along e_1, so w = (w_1, w_2) with w_2 hinting at which batch of D was
drawn. Given the batch class k of D (log-probability `log_probability[k]`, centre `centres[k]` of w_2 in units of
sigma), the gate accepts with probability `without[k]` if x is not in the batch and `with_extra[k]` if it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from exact_quadrature import Array, Grid, logsumexp

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, kw_only=True)
class OrthogonalBatches:
    """A same-batch gate whose batches are told apart by a second direction of the released sum."""

    rate: float
    sigma: float
    log_probability: Array
    centres: Array
    without: Array
    with_extra: Array

    def _second(self) -> tuple[Grid, Array, Array]:
        spread = float(np.ptp(self.centres))
        grid = Grid(
            float(self.centres.min()) - 10,
            float(self.centres.max()) + 10,
            np.empty(0),
            1.0 if spread < 50 else 2.0,
        )
        density = -0.5 * (grid.nodes[None] - self.centres[:, None, None]) ** 2 - _HALF_LOG_2PI
        base = self.log_probability[:, None, None] + density
        return (
            grid,
            logsumexp(base + np.log(self.without)[:, None, None], axis=0),
            logsumexp(base + np.log(self.with_extra)[:, None, None], axis=0),
        )

    def _moments(self, order: float) -> list[tuple[float, float, float]]:
        """For P = order and P = 1 - order: logs of F, Z and Z' of the accepted, unnormalised law."""
        second, log_a, log_a_extra = self._second()
        mu = 1 / self.sigma
        reach = 10 + order * mu
        first = Grid(-reach, reach, np.empty(0), min(1.0, 2 / (mu * np.sqrt(order))), points=12)
        y, log_w = first.nodes.ravel(), (first.log_weights - 0.5 * first.nodes**2 - _HALF_LOG_2PI).ravel()
        log_l = mu * y - mu**2 / 2
        mixed = np.logaddexp(
            np.log1p(-self.rate) + log_a.reshape(-1, 1),
            np.log(self.rate) + log_a_extra.reshape(-1, 1) + log_l,
        )
        log_z, log_z_extra = second.log_integral(log_a), second.log_integral(log_a_extra)
        log_z_prime = float(np.logaddexp(np.log1p(-self.rate) + log_z, np.log(self.rate) + log_z_extra))
        found = []
        for power in (order, 1 - order):
            inner = logsumexp(power * mixed + (1 - power) * log_a.reshape(-1, 1) + log_w, axis=1)
            found.append((second.log_integral(inner.reshape(log_a.shape)), log_z, log_z_prime))
        return found

    def exact_hidden_rdp(self, order: float) -> tuple[float, float]:
        """Renyi divergences (add, remove) of the accepted sum."""
        add, remove = (
            (f + (power - 1) * z - power * z_prime) / (order - 1)
            for power, (f, z, z_prime) in zip((order, 1 - order), self._moments(order), strict=True)
        )
        return add, remove

    def exact_visible_rdp(self, order: float) -> tuple[float, float]:
        """Renyi divergences (add, remove) of a trial that outputs its sum or "rejected"."""
        found = []
        for power, (f, z, z_prime) in zip((order, 1 - order), self._moments(order), strict=True):
            reject, reject_prime = np.log1p(-np.exp(z)), np.log1p(-np.exp(z_prime))
            found.append(float(np.logaddexp(f, power * reject_prime + (1 - power) * reject)) / (order - 1))
        return found[0], found[1]


def exact_scored_batch_rdp(
    *,
    rate: float,
    sigma: float,
    sigma_v: float,
    beta: float,
    log_probability: Array,
    without: Array,
    with_extra: Array,
    order: float,
) -> tuple[float, float]:
    """Hidden Renyi divergences when the accepted trial also releases its score, the gate's own.

    Metrics `without[k]` and `with_extra[k]` lie in [-1, 1]; the score adds N(0, (2 sigma_v)^2) and is accepted below
    `beta`, so the released score is truncated. Batches of D are not told apart by w (D is silent).
    """
    mu = 1 / sigma
    reach = 10 + order * mu
    y = Grid(-reach, reach, np.empty(0), 0.5)
    deviation = 2 * sigma_v
    low = min(beta, -1.0) - deviation * (9 + order / deviation)
    s = Grid(low, beta, np.empty(0), 0.5 * deviation)
    log_y = (-0.5 * y.nodes**2 - _HALF_LOG_2PI).ravel()
    log_l = mu * y.nodes.ravel() - mu**2 / 2

    def scores(metric: Array) -> Array:
        z = (s.nodes.ravel()[None] - metric[:, None]) / deviation
        return -0.5 * z**2 - _HALF_LOG_2PI - np.log(deviation)

    k_without = logsumexp(log_probability[:, None] + scores(without), axis=0)
    k_extra = logsumexp(log_probability[:, None] + scores(with_extra), axis=0)
    p = log_y[:, None] + k_without[None]
    q = log_y[:, None] + np.logaddexp(
        np.log1p(-rate) + k_without[None], np.log(rate) + k_extra[None] + log_l[:, None]
    )
    weight = y.log_weights.ravel()[:, None] + s.log_weights.ravel()[None]
    z, z_prime = float(logsumexp(p + weight)), float(logsumexp(q + weight))
    found = []
    for top, zt, bottom, zb in ((q, z_prime, p, z), (p, z, q, z_prime)):
        total = logsumexp(order * (top - zt) + (1 - order) * (bottom - zb) + weight)
        found.append(float(total) / (order - 1))
    return found[0], found[1]

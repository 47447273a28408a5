"""Random toy data sets with random gates that try to leak as much as they may."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from exact_batches import OrthogonalBatches
from exact_choice import ScoredGate
from exact_quadrature import Array
from exact_trials import BatchGate, IndependentGate, Train
from scipy.special import ndtr


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Public parameters of a trial with an independent validation gate."""

    rate: float
    sigma: float
    gate_rate: float
    a_min: float
    a_max: float

    @property
    def kappa(self) -> float:
        return self.a_max / self.a_min


def random_table(rng: np.random.Generator, setting: Setting, rows: int, pieces: int) -> Array:
    """Acceptance values: extreme, uniform or log-uniform, by chance."""
    style = rng.integers(3)
    unit = rng.integers(0, 2, (rows, pieces)).astype(float) if style == 0 else rng.random((rows, pieces))
    if style == 2:
        return np.asarray(setting.a_min * setting.kappa**unit)
    return np.asarray(setting.a_min + (setting.a_max - setting.a_min) * unit)


def random_toy(rng: np.random.Generator, setting: Setting) -> tuple[Train, IndependentGate]:
    """A toy data set of 0 to 2 records plus x, with random gradients and a random gate on every validation batch."""
    records = int(rng.integers(0, 3))
    pieces = int(rng.integers(1, 7))
    centre = rng.choice([0.0, 1 / setting.sigma, 3.0])
    edges = np.sort(rng.normal(centre, 1.5, pieces - 1))
    extreme = rng.random() < 0.7
    gradients = (
        tuple(float(g) for g in rng.uniform(-1, 1, records)) if rng.random() < 0.6 else (0.0,) * records
    )
    train = Train(
        gradients=gradients,
        extra=1.0 if extreme else float(rng.uniform(-1, 1)),
        rate=setting.rate,
        sigma=setting.sigma,
    )
    gate = IndependentGate(
        edges=tuple(float(e) for e in edges),
        rate=setting.gate_rate,
        without=random_table(rng, setting, 2**records, pieces),
        with_extra=random_table(rng, setting, 2**records, pieces),
    )
    return train, gate


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A clipped, noisy metric of the training batch: in [-1, 1], moved by at most 2/span by one record.

    It is accepted if metric + N(0, (2 sigma_v / span)^2) is below `threshold`; one-sided metrics only grow with x.
    """

    sigma_v: float
    threshold: float
    span: float = 1.0
    one_sided: bool = False

    def accepts(self, metric: Array) -> Array:
        """The acceptance probability of each metric."""
        return np.asarray(ndtr((self.threshold - metric) * self.span / (2 * self.sigma_v)))

    def random_pair(self, rng: np.random.Generator, count: int) -> tuple[Array, Array]:
        """Metrics of `count` batches without and with x."""
        low = rng.choice([-1.0, 1.0], count) if rng.random() < 0.5 else rng.uniform(-1, 1, count)
        move = rng.choice([-1.0, 1.0], count) if rng.random() < 0.6 else rng.uniform(-1, 1, count)
        move = np.abs(move) if self.one_sided else move
        return low, np.clip(low + move * 2 / self.span, -1, 1)


def random_batch_toy(
    rng: np.random.Generator, rate: float, sigma: float, metric: Metric
) -> tuple[Train, BatchGate]:
    """A toy data set of 0 to 3 records plus x whose gate looks at the training batch."""
    records = int(rng.integers(0, 4))
    moving = rng.random() < 0.5
    train = Train(
        gradients=tuple(float(g) for g in rng.uniform(-1, 1, records)) if moving else (0.0,) * records,
        extra=1.0 if rng.random() < 0.7 else float(rng.uniform(-1, 1)),
        rate=rate,
        sigma=sigma,
    )
    without, with_extra = metric.random_pair(rng, 2**records)
    return train, BatchGate(without=metric.accepts(without), with_extra=metric.accepts(with_extra))


def random_orthogonal(
    rng: np.random.Generator, rate: float, sigma: float, metric: Metric
) -> OrthogonalBatches:
    """Two classes of batches, told apart by another direction of the sum."""
    share = rng.random()
    without, with_extra = metric.random_pair(rng, 2)
    return OrthogonalBatches(
        rate=rate,
        sigma=sigma,
        log_probability=np.log([share, 1 - share]),
        centres=np.array([0.0, rng.choice([1.0, 20.0])]),
        without=metric.accepts(without),
        with_extra=metric.accepts(with_extra),
    )


def random_scored_toy(
    rng: np.random.Generator, rate: float, sigma: float, gate_rate: float, sigma_v: float, beta: float
) -> tuple[Train, ScoredGate]:
    """A toy data set of 0 to 2 records plus x whose gate has a metric for every validation batch and piece of w."""
    records, pieces = int(rng.integers(0, 3)), int(rng.integers(1, 6))
    edges = np.sort(rng.normal(rng.choice([0.0, 1 / sigma]), 1.5, pieces - 1))
    moving = rng.random() < 0.5
    train = Train(
        gradients=tuple(float(g) for g in rng.uniform(-1, 1, records)) if moving else (0.0,) * records,
        extra=1.0,
        rate=rate,
        sigma=sigma,
    )

    def metrics() -> Array:
        shape = (2**records, pieces)
        return rng.choice([-1.0, 1.0], shape) if rng.random() < 0.6 else rng.uniform(-1, 1, shape)

    return train, ScoredGate(
        edges=tuple(float(e) for e in edges),
        rate=gate_rate,
        sigma_v=sigma_v,
        beta=beta,
        without=metrics(),
        with_extra=metrics(),
    )

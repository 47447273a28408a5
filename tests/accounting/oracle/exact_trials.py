"""Explicit selective-release mechanisms on explicit toy data, and their exact divergences.

The data set D has up to a few records, D' = D + x. A record's clipped gradient is a number in [-1, 1]; a trial draws
a Poisson batch at rate q, adds Gaussian noise of standard deviation sigma to the batch's sum and calls the result w
(stored in units of sigma). A gate then accepts or rejects. Two kinds of gate:

* `IndependentGate`: accepts with a probability that depends on w and on a validation batch drawn afresh at rate q_v;
* `BatchGate`: accepts with a probability that depends on the training batch itself.

Nothing here knows the theorems: acceptance is averaged over all subsets, densities are mixtures over all subsets,
and divergences are integrals over w.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from exact_quadrature import Array, Grid, logsumexp, roots_between

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


def subset_log_probabilities(records: int, rate: float) -> tuple[list[tuple[int, ...]], Array]:
    """All subsets of `records` records as 0/1 tuples, and the log-probability of each under Poisson sampling."""
    subsets = list(product((0, 1), repeat=records))
    sizes = np.array([sum(s) for s in subsets], dtype=float)
    with np.errstate(divide="ignore"):
        log_in = np.log(rate) if rate > 0 else -np.inf
        log_out = np.log1p(-rate) if rate < 1 else -np.inf
    with np.errstate(invalid="ignore"):
        inside = np.where(sizes > 0, sizes * log_in, 0.0)
        outside = np.where(records - sizes > 0, (records - sizes) * log_out, 0.0)
    return subsets, inside + outside


@dataclass(frozen=True, kw_only=True)
class Train:
    """The training half of a trial: gradients of D's records, the gradient of x, rate and noise multiplier."""

    gradients: tuple[float, ...]
    extra: float
    rate: float
    sigma: float

    def log_parts(self, w: Array, *, with_extra: bool) -> tuple[list[tuple[int, ...]], Array]:
        """log(P(batch) density(w | batch)) for every batch of D or D': shape (batches, *w.shape)."""
        gradients = (*self.gradients, self.extra) if with_extra else self.gradients
        subsets, log_probability = subset_log_probabilities(len(gradients), self.rate)
        centres = (
            np.array([sum(g * b for g, b in zip(gradients, s, strict=True)) for s in subsets]) / self.sigma
        )
        shape = (-1,) + (1,) * w.ndim
        density = -0.5 * (w[None] - centres.reshape(shape)) ** 2 - _HALF_LOG_2PI
        return subsets, density + log_probability.reshape(shape)


@dataclass(frozen=True, kw_only=True)
class IndependentGate:
    """Acceptance tables on the pieces of w cut at `edges`: one row for each validation batch V of D, then of V + x.

    `without[k, j]` is the acceptance probability for the k-th subset of D (as validation batch) on piece j, and
    `with_extra[k, j]` the same for that subset plus x.
    """

    edges: tuple[float, ...]
    rate: float
    without: Array
    with_extra: Array

    def acceptance(self, w: Array) -> tuple[Array, Array]:
        """(a_D(w), a_D'(w))."""
        records = int(np.log2(len(self.without)))
        _, log_probability = subset_log_probabilities(records, self.rate)
        weights = np.exp(log_probability)
        a = weights @ self.without
        a_extra = weights @ self.with_extra
        piece = np.searchsorted(np.asarray(self.edges), w)
        return a[piece], ((1 - self.rate) * a + self.rate * a_extra)[piece]


@dataclass(frozen=True, kw_only=True)
class BatchGate:
    """Acceptance probability of every training batch of D (`without`) and of the same batch plus x (`with_extra`)."""

    without: Array
    with_extra: Array


@dataclass(frozen=True, kw_only=True)
class TrialLaw:
    """Log-densities of the accepted candidate under D and D' (not normalised) on a quadrature rule."""

    log_weights: Array
    log_p: Array
    log_q: Array

    def log_integral(self, log_values: Array) -> float:
        """Log of the integral of exp(log_values)."""
        return float(logsumexp(log_values + self.log_weights))

    @property
    def log_accept(self) -> tuple[float, float]:
        """Log-probability that one trial accepts, under D and under D'."""
        return self.log_integral(self.log_p), self.log_integral(self.log_q)


def mixed_law(parts: Sequence[tuple[float, TrialLaw]]) -> TrialLaw:
    """The law if the gate also looks at another coordinate of w that carries noise only, and so picks a part."""
    return TrialLaw(
        log_weights=np.concatenate([(law.log_weights + np.log(share)).ravel() for share, law in parts]),
        log_p=np.concatenate([law.log_p.ravel() for _, law in parts]),
        log_q=np.concatenate([law.log_q.ravel() for _, law in parts]),
    )


def _densities(train: Train, gate: IndependentGate | BatchGate, w: Array) -> tuple[Array, Array]:
    if isinstance(gate, IndependentGate):
        _, p = train.log_parts(w, with_extra=False)
        _, q = train.log_parts(w, with_extra=True)
        a, a_prime = gate.acceptance(w)
        return logsumexp(p, axis=0) + np.log(a), logsumexp(q, axis=0) + np.log(a_prime)
    shape = (-1,) + (1,) * w.ndim
    _, p = train.log_parts(w, with_extra=False)
    _, q = train.log_parts(w, with_extra=True)
    both = np.stack([gate.without, gate.with_extra], axis=1).ravel()  # subsets of D' count x fastest
    return (
        logsumexp(p + np.log(gate.without).reshape(shape), axis=0),
        logsumexp(q + np.log(both).reshape(shape), axis=0),
    )


def _grid(train: Train, gate: IndependentGate | BatchGate, order: float) -> Grid:
    records = len(train.gradients) + 1
    reach = 12 + (order + records) / train.sigma
    step = min(0.5, 2 * train.sigma / (records * np.sqrt(order)))
    return Grid(-reach, reach, np.asarray(gate.edges if isinstance(gate, IndependentGate) else ()), step)


def trial_law(train: Train, gate: IndependentGate | BatchGate, order: float = 2.0) -> TrialLaw:
    """The accepted candidate's law on a rule that is wide and fine enough for Renyi order `order`."""
    grid = _grid(train, gate, order)
    log_p, log_q = _densities(train, gate, grid.nodes)
    return TrialLaw(log_weights=grid.log_weights, log_p=log_p, log_q=log_q)


def exact_hidden_rdp(law: TrialLaw, order: float) -> tuple[float, float]:
    """Renyi divergences (add, remove) of the accepted candidate's law: D(P'||P), D(P||P')."""
    z, z_prime = law.log_accept
    add = law.log_integral(order * (law.log_q - z_prime) + (1 - order) * (law.log_p - z))
    remove = law.log_integral(order * (law.log_p - z) + (1 - order) * (law.log_q - z_prime))
    return add / (order - 1), remove / (order - 1)


def exact_visible_rdp(law: TrialLaw, order: float) -> tuple[float, float]:
    """Renyi divergences (add, remove) of a trial that outputs its candidate or "rejected"."""
    z, z_prime = law.log_accept
    reject, reject_prime = np.log1p(-np.exp(z)), np.log1p(-np.exp(z_prime))
    found = []
    for top, low, rt, rl in (
        (law.log_q, law.log_p, reject_prime, reject),
        (law.log_p, law.log_q, reject, reject_prime),
    ):
        accept = law.log_integral(order * top + (1 - order) * low)
        found.append(float(np.logaddexp(accept, order * rt + (1 - order) * rl)) / (order - 1))
    return found[0], found[1]


def _hockey_stick(
    train: Train, gate: IndependentGate | BatchGate, epsilon: float, shift: float, *, add: bool
) -> float:
    """Integral of (e^shift top - e^epsilon low)_+."""

    def gap(w: Array) -> Array:
        p, q = _densities(train, gate, w)
        return (q - p if add else p - q) + shift - epsilon

    coarse = _grid(train, gate, 2.0)
    edges = np.asarray(gate.edges if isinstance(gate, IndependentGate) else ())
    breaks = np.concatenate([edges, roots_between(gap, coarse)])
    grid = Grid(float(coarse.edges[0]), float(coarse.edges[-1]), breaks, 0.5)
    p, q = _densities(train, gate, grid.nodes)
    top, low = (q, p) if add else (p, q)
    ratio = top + shift - (low + epsilon)
    value = np.where(ratio > 0, np.exp(top + shift + grid.log_weights) * -np.expm1(-np.abs(ratio)), 0.0)
    return float(value.sum())


def exact_hidden_profile(
    train: Train, gate: IndependentGate | BatchGate, epsilon: float
) -> tuple[float, float]:
    """Hockey-stick divergences (add, remove) at e^epsilon of the accepted candidate's law."""
    z, z_prime = trial_law(train, gate).log_accept
    add = _hockey_stick(train, gate, epsilon, z - z_prime, add=True) * np.exp(-z)
    remove = _hockey_stick(train, gate, epsilon, z_prime - z, add=False) * np.exp(-z_prime)
    return float(add), float(remove)


def exact_visible_profile(
    train: Train, gate: IndependentGate | BatchGate, epsilon: float
) -> tuple[float, float]:
    """Hockey-stick divergences (add, remove) at e^epsilon of a trial that outputs its candidate or "rejected"."""
    z, z_prime = (np.exp(log) for log in trial_law(train, gate).log_accept)
    gamma = np.exp(epsilon)
    add = _hockey_stick(train, gate, epsilon, 0.0, add=True) + max((1 - z_prime) - gamma * (1 - z), 0.0)
    remove = _hockey_stick(train, gate, epsilon, 0.0, add=False) + max((1 - z) - gamma * (1 - z_prime), 0.0)
    return float(add), float(remove)

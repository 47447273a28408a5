"""Two accepted candidates and the choice between them (buffered rejection), exactly, on toy data.

Every validation batch V has a metric in [-1, 1] on each piece of w; the score adds N(0, (2 sigma_v)^2) and a trial is
accepted if its score is below beta. So the accepted pair (w, score) is a mixture, over validation batches, of
Gaussians truncated to scores below beta.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from exact_quadrature import Array, Grid, logsumexp
from exact_trials import Train, subset_log_probabilities
from scipy.stats import norm


@dataclass(frozen=True, kw_only=True)
class ScoredGate:
    """Metrics of every validation batch of D (rows) on every piece of w (columns), without and with x."""

    edges: tuple[float, ...]
    rate: float
    sigma_v: float
    beta: float
    without: Array
    with_extra: Array

    @property
    def deviation(self) -> float:
        return 2 * self.sigma_v

    def mixture(self, *, with_extra: bool) -> tuple[Array, Array]:
        """(probabilities, metrics[batch, piece]) of the validation batches of D or D'."""
        records = int(np.log2(len(self.without)))
        _, log_probability = subset_log_probabilities(records, self.rate)
        if not with_extra:
            return np.exp(log_probability), self.without
        both = np.concatenate(
            [(1 - self.rate) * np.exp(log_probability), self.rate * np.exp(log_probability)]
        )
        return both, np.concatenate([self.without, self.with_extra])

    def score_density(self, s: Array, *, with_extra: bool) -> Array:
        """Density of an (accepted, not normalised) score s on every piece: shape (pieces, len(s))."""
        probability, metric = self.mixture(with_extra=with_extra)
        density = norm.pdf(s[None, None], loc=metric[:, :, None], scale=self.deviation)
        return np.einsum("k,kps->ps", probability, density)

    def score_tail(self, s: Array, *, with_extra: bool) -> Array:
        """P(s < score < beta) on every piece, not normalised."""
        probability, metric = self.mixture(with_extra=with_extra)
        below = norm.cdf((self.beta - metric[:, :, None]) / self.deviation)
        tail = below - norm.cdf((np.minimum(s, self.beta)[None, None] - metric[:, :, None]) / self.deviation)
        return np.einsum("k,kps->ps", probability, np.maximum(tail, 0.0))


@dataclass(frozen=True, kw_only=True)
class _Pieces:
    """Train-step integrals over each piece of w."""

    grid: Grid
    piece: Array
    log_p: Array
    log_q: Array

    def total(self, log_values: Array) -> Array:
        """log of the integral over each piece."""
        flat = (log_values + self.grid.log_weights).ravel()
        count = int(self.piece.max()) + 1
        return np.array([logsumexp(flat[self.piece.ravel() == j]) for j in range(count)])


def _pieces(train: Train, edges: tuple[float, ...], order: float) -> _Pieces:
    records = len(train.gradients) + 1
    reach = 12 + (order + records) / train.sigma
    grid = Grid(-reach, reach, np.asarray(edges), min(0.5, 2 / (records / train.sigma * np.sqrt(order))))
    _, p = train.log_parts(grid.nodes, with_extra=False)
    _, q = train.log_parts(grid.nodes, with_extra=True)
    return _Pieces(
        grid=grid,
        piece=np.searchsorted(np.asarray(edges), grid.nodes),
        log_p=logsumexp(p, axis=0),
        log_q=logsumexp(q, axis=0),
    )


def exact_scored_rdp(train: Train, gate: ScoredGate, order: float) -> tuple[float, float]:
    """Renyi divergences (add, remove) of one accepted (candidate, score)."""
    pieces = _pieces(train, gate.edges, order)
    low = min(gate.beta, -1.0) - gate.deviation * 10 - order * 2
    scores = Grid(low, gate.beta, np.empty(0), 0.25 * gate.deviation)
    s = scores.nodes.ravel()
    with np.errstate(divide="ignore"):
        k, k_prime = (np.log(gate.score_density(s, with_extra=x)) for x in (False, True))
    keep = np.isfinite(k).all(axis=0) & np.isfinite(k_prime).all(axis=0)
    k, k_prime, log_w = k[:, keep], k_prime[:, keep], scores.log_weights.ravel()[keep]
    p, q = pieces.total(pieces.log_p), pieces.total(pieces.log_q)
    z = float(logsumexp(p + logsumexp(k + log_w, axis=1)))
    z_prime = float(logsumexp(q + logsumexp(k_prime + log_w, axis=1)))
    found = []
    for add in (True, False):
        power = order if add else 1 - order
        train_part = pieces.total(power * pieces.log_q + (1 - power) * pieces.log_p)
        test_part = logsumexp(power * k_prime + (1 - power) * k + log_w, axis=1)
        found.append(
            (float(logsumexp(train_part + test_part)) + (power - 1) * z - power * z_prime) / (order - 1)
        )
    return found[0], found[1]


def _chosen_weight(
    pieces: _Pieces, gate: ScoredGate, theta: float, *, with_extra: bool
) -> tuple[Array, Array]:
    """log-weight of a chosen candidate on every piece, and log-mass of w on every piece."""
    mass = pieces.total(pieces.log_q if with_extra else pieces.log_p)
    low = min(gate.beta, -1.0) - gate.deviation * 12
    breaks = np.array([gate.beta - theta]) if theta else np.empty(0)
    scores = Grid(low, gate.beta, breaks, 0.25 * gate.deviation)
    s = scores.nodes.ravel()

    def other_above(at: Array) -> Array:
        return np.exp(mass) @ gate.score_tail(at, with_extra=with_extra)

    tail = (other_above(s - theta) + other_above(s + theta)) / 2
    weight = gate.score_density(s, with_extra=with_extra) @ (tail * np.exp(scores.log_weights.ravel()))
    return np.log(weight), mass


def exact_chosen_rdp(train: Train, gate: ScoredGate, order: float, theta: float = 0.0) -> tuple[float, float]:
    """Renyi divergences (add, remove) of the chosen one of two accepted candidates (lower score; ties by a coin)."""
    pieces = _pieces(train, gate.edges, order)
    a, mass = _chosen_weight(pieces, gate, theta, with_extra=False)
    a_prime, mass_prime = _chosen_weight(pieces, gate, theta, with_extra=True)
    z, z_prime = float(logsumexp(a + mass)), float(logsumexp(a_prime + mass_prime))
    found = []
    for add in (True, False):
        power = order if add else 1 - order
        train_part = pieces.total(power * pieces.log_q + (1 - power) * pieces.log_p)
        total = logsumexp(power * a_prime + (1 - power) * a + train_part)
        found.append((float(total) + (power - 1) * z - power * z_prime) / (order - 1))
    return found[0], found[1]


def _cell_masses(train: Train, edges: tuple[float, ...], cells: int) -> tuple[Array, Array, Array]:
    """Probabilities of small cells of w under D and D' (exact), and the piece that each lies in."""
    reach = 9 + (len(train.gradients) + 1) / train.sigma
    ends = np.unique(np.concatenate([np.linspace(-reach, reach, cells + 1), np.asarray(edges)]))
    masses = []
    for with_extra in (False, True):
        subsets, log_parts = train.log_parts(np.zeros(1), with_extra=with_extra)
        gradients = (*train.gradients, train.extra) if with_extra else train.gradients
        centres = (
            np.array([sum(g * b for g, b in zip(gradients, s, strict=True)) for s in subsets]) / train.sigma
        )
        shares = np.exp(log_parts[:, 0] - norm.logpdf(-centres))
        masses.append(shares @ np.diff(norm.cdf(ends[None] - centres[:, None]), axis=1))
    piece = np.searchsorted(np.asarray(edges), (ends[1:] + ends[:-1]) / 2)
    return masses[0], masses[1], piece


def _hockey_sticks(p: Array, q: Array, epsilon: float) -> tuple[float, float]:
    gamma = np.exp(epsilon)
    return float(np.maximum(q - gamma * p, 0).sum()), float(np.maximum(p - gamma * q, 0).sum())


def scored_profile_from_below(
    train: Train, gate: ScoredGate, epsilon: float, *, visible: bool
) -> tuple[float, float]:
    """Hockey-stick divergences (add, remove) of (candidate, score), rounded to small cells: a post-processing."""
    p, q, piece = _cell_masses(train, gate.edges, 500)
    low = min(gate.beta, -1.0) - 7 * gate.deviation
    ends = np.concatenate([[-1e9], np.linspace(low, gate.beta, 120)])
    k, k_prime = (-np.diff(gate.score_tail(ends, with_extra=x), axis=1)[piece] for x in (False, True))
    law, law_prime = p[:, None] * k, q[:, None] * k_prime
    z, z_prime = law.sum(), law_prime.sum()
    if not visible:
        return _hockey_sticks(law / z, law_prime / z_prime, epsilon)
    rejected = _hockey_sticks(np.array(1 - z), np.array(1 - z_prime), epsilon)
    accepted = _hockey_sticks(law, law_prime, epsilon)
    return accepted[0] + rejected[0], accepted[1] + rejected[1]


def chosen_profile_from_below(
    train: Train, gate: ScoredGate, epsilon: float, theta: float = 0.0
) -> tuple[float, float]:
    """Hockey-stick divergences (add, remove) of the chosen candidate, rounded to small cells."""
    pieces = _pieces(train, gate.edges, 2.0)
    a, a_prime = (np.exp(_chosen_weight(pieces, gate, theta, with_extra=x)[0]) for x in (False, True))
    p, q, piece = _cell_masses(train, gate.edges, 2000)
    law, law_prime = p * a[piece], q * a_prime[piece]
    return _hockey_sticks(law / law.sum(), law_prime / law_prime.sum(), epsilon)

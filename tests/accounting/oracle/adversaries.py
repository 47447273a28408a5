"""Acceptance functions that try to leak as much as they may: random ones, and ones found by ascent.

The ascent works on any mechanism whose training step has one record (D is silent, x moves the sum by the full clipping
norm), and whose validation set is so large that a_D(w) and a_1(w) can be any functions with values in
[a_min, a_max]. What it returns is an explicit mechanism, so its divergence is a lower bound on any valid bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from exact_quadrature import Array, Grid, logsumexp
from exact_trials import BatchGate, IndependentGate, Train

_CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))


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
    gradients = tuple(float(g) for g in rng.uniform(-1, 1, records)) if rng.random() < 0.6 else (0.0,) * records
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


def random_batch_gate(rng: np.random.Generator, setting: Setting, ratio: tuple[float, float]) -> tuple[Train, BatchGate]:
    """A toy data set whose gate looks at the training batch; a(B + x) / a(B) stays within `ratio`."""
    records = int(rng.integers(0, 4))
    train = Train(
        gradients=tuple(float(g) for g in rng.uniform(-1, 1, records)) if rng.random() < 0.5 else (0.0,) * records,
        extra=1.0 if rng.random() < 0.7 else float(rng.uniform(-1, 1)),
        rate=setting.rate,
        sigma=setting.sigma,
    )
    a = random_table(rng, setting, 1, 2**records)[0]
    low = np.maximum(setting.a_min, a * ratio[0])
    high = np.minimum(setting.a_max, a * ratio[1])
    unit = rng.integers(0, 2, len(a)).astype(float) if rng.random() < 0.5 else rng.random(len(a))
    return train, BatchGate(without=a, with_extra=low + (high - low) * unit)


def _law_nodes(setting: Setting, order: float, breaks: Array) -> tuple[Grid, Array, Array]:
    mu = 1 / setting.sigma
    reach = 10 + order * mu
    grid = Grid(-reach, reach, breaks, min(0.25, 1 / (mu * np.sqrt(order))))
    y = grid.nodes
    log_v = np.logaddexp(np.log1p(-setting.rate), np.log(setting.rate) + mu * y - mu**2 / 2)
    return grid, log_v, -0.5 * y**2 - 0.5 * np.log(2 * np.pi) + grid.log_weights


def _corner_values(setting: Setting, same: bool) -> tuple[Array, Array]:
    levels = (setting.a_min, setting.a_max)
    a = np.array([levels[i] for i, _ in _CORNERS])
    a_one = a if same else np.array([levels[j] for _, j in _CORNERS])
    return a, (1 - setting.gate_rate) * a + setting.gate_rate * a_one


def _as_mechanism(setting: Setting, grid: Grid, choice: Array, same: bool) -> tuple[Train, IndependentGate]:
    y, corner = grid.nodes.ravel(), choice.ravel()
    jumps = np.nonzero(corner[1:] != corner[:-1])[0]
    edges = (y[jumps] + y[jumps + 1]) / 2
    pieces = corner[np.concatenate([jumps, [len(corner) - 1]])]
    levels = np.array([setting.a_min, setting.a_max])
    a = levels[[_CORNERS[c][0] for c in pieces]]
    a_one = a if same else levels[[_CORNERS[c][1] for c in pieces]]
    gate = IndependentGate(
        edges=tuple(float(e) for e in edges), rate=setting.gate_rate, without=a[None], with_extra=a_one[None]
    )
    return Train(gradients=(), extra=1.0, rate=setting.rate, sigma=setting.sigma), gate


@dataclass(frozen=True, kw_only=True)
class _Ascent:
    """Fixed-point ascent over corner choices; the objective's slopes decide the corner at every y."""

    setting: Setting
    order: float
    add: bool
    same: bool

    @property
    def power(self) -> float:
        return self.order if self.add else 1 - self.order

    def choose(self, log_v: Array, slopes: tuple[float, float, float]) -> Array:
        """The corner that maximises e^s0 f + (P - 1) e^s1 a - P e^s2 v a' at every node."""
        a, a_prime = _corner_values(self.setting, self.same)
        log_k = self.power * np.log(a_prime) + (1 - self.power) * np.log(a)
        x, y, w = self.power * log_v + slopes[0], np.full_like(log_v, slopes[1]), log_v + slopes[2]
        top = np.maximum(np.maximum(x, y), w)
        x, y, w = np.exp(x - top), (self.power - 1) * np.exp(y - top), -self.power * np.exp(w - top)
        scores = [x * np.exp(log_k[c]) + y * a[c] + w * a_prime[c] for c in range(4)]
        return np.argmax(scores, axis=0)

    def moments(self, log_v: Array, log_w: Array, choice: Array) -> tuple[float, float, float]:
        """Logs of F, Z and Z' under a corner choice."""
        a, a_prime = _corner_values(self.setting, self.same)
        log_k = self.power * np.log(a_prime) + (1 - self.power) * np.log(a)
        return (
            float(logsumexp(log_w + self.power * log_v + log_k[choice])),
            float(logsumexp(log_w + np.log(a)[choice])),
            float(logsumexp(log_w + log_v + np.log(a_prime)[choice])),
        )

    def best_ratio(self, log_v: Array, log_w: Array, log_r: float) -> tuple[Array, float]:
        """The corners that maximise F / ((1 - P) r^P Z + P r^(P-1) Z'), and their log(Z'/Z)."""
        choice = self.choose(log_v, (-1e9, 0.0, -log_r))  # the least T: where it is not positive, no level will do
        for _ in range(40):
            log_f, log_z, log_z_prime = self.moments(log_v, log_w, choice)
            tangent = (1 - self.power) + self.power * np.exp(log_z_prime - log_z - log_r)
            if tangent <= 0:
                break
            level = log_f - log_z - float(np.log(tangent))
            fresh = self.choose(log_v, (-level, 0.0, -log_r))
            if (fresh == choice).all():
                break
            choice = fresh
        return choice, log_z_prime - log_z


Slopes = tuple[float, float, float]


def _climb(
    ascent: _Ascent,
    starts: list[Slopes],
    judge: Callable[[float, float, float], tuple[float, Slopes]],
) -> tuple[float, Train, IndependentGate]:
    """Iterates corner choice and slopes from every start, then once more on a grid cut at the jumps found."""
    breaks: Array = np.empty(0)
    best, best_slopes = -np.inf, starts[0]
    for _ in range(4):
        grid, log_v, log_w = _law_nodes(ascent.setting, ascent.order, breaks)
        best, best_choice = -np.inf, np.zeros(grid.nodes.shape, dtype=int)
        for slopes in starts:
            for _ in range(60):
                choice = ascent.choose(log_v, slopes)
                value, fresh = judge(*ascent.moments(log_v, log_w, choice))
                moved = max(abs(f - s) for f, s in zip(fresh, slopes, strict=True))
                if value > best:
                    best, best_choice, best_slopes = value, choice, fresh
                slopes = fresh
                if moved < 1e-13:
                    break
        train, gate = _as_mechanism(ascent.setting, grid, best_choice, ascent.same)
        starts, breaks = [best_slopes], np.asarray(gate.edges)
    return best, train, gate


Mechanism = list[tuple[float, IndependentGate]]


def silent_train(setting: Setting) -> Train:
    """D has no gradient, x the largest one."""
    return Train(gradients=(), extra=1.0, rate=setting.rate, sigma=setting.sigma)


def worst_hidden(setting: Setting, order: float, *, add: bool, same: bool = False) -> tuple[float, Mechanism]:
    """The gate that leaks most in the accepted candidate; `same` keeps it blind to x (a_1 = a).

    With T_r(a) = (1 - P) r^P Z + P r^(P-1) Z' <= Z'^P Z^(1-P), the best gate for F/T_r has its own ratio Z'/Z; r is
    bisected until both agree. There two gates may tie, and noise picks one of them.
    """
    ascent = _Ascent(setting=setting, order=order, add=add, same=same)
    power, breaks = ascent.power, np.empty(0)
    best, mechanism = -np.inf, []
    for _ in range(3):
        grid, log_v, log_w = _law_nodes(setting, order, breaks)
        low, high = -np.log(setting.kappa) - 1e-12, np.log(setting.kappa) + 1e-12
        below = above = np.zeros(grid.nodes.shape, dtype=int)
        for _ in range(52):
            log_r = (low + high) / 2
            choice, own = ascent.best_ratio(log_v, log_w, log_r)
            if own > log_r:
                low, above = log_r, choice
            else:
                high, below = log_r, choice
        moments = np.exp([ascent.moments(log_v, log_w, c) for c in (below, above)] - _tops(ascent, log_v, log_w, below))
        for share in np.unique(np.concatenate([[0.0, 1.0], _matching_share(moments, np.exp((low + high) / 2))])):
            mixed = share * moments[0] + (1 - share) * moments[1]
            f, z, z_prime = np.log(mixed) + _tops(ascent, log_v, log_w, below)
            value = float(f + (power - 1) * z - power * z_prime) / (order - 1)
            if value > best:
                parts = [(s, _as_mechanism(setting, grid, c, same)[1]) for s, c in ((share, below), (1 - share, above))]
                best, mechanism = value, [(float(s), gate) for s, gate in parts if s > 0]
        edges = [_as_mechanism(setting, grid, c, same)[1].edges for c in (below, above)]
        breaks = np.array(sorted({*edges[0], *edges[1]}))
    return best, mechanism


def _tops(ascent: _Ascent, log_v: Array, log_w: Array, choice: Array) -> Array:
    return np.array([ascent.moments(log_v, log_w, choice)[0], 0.0, 0.0])


def _matching_share(moments: Array, ratio: float) -> Array:
    """The share of the first gate at which the mixture's Z'/Z is `ratio`."""
    gaps = moments[:, 2] - ratio * moments[:, 1]
    share = gaps[1] / (gaps[1] - gaps[0]) if gaps[1] != gaps[0] else 0.5
    return np.array([min(max(share, 0.0), 1.0)])


def worst_visible(
    setting: Setting, order: float, *, add: bool, starts: int = 17
) -> tuple[float, Train, IndependentGate]:
    """Ascends the visible Renyi divergence from many reject ratios (1 - Z')/(1 - Z)."""
    ascent = _Ascent(setting=setting, order=order, add=add, same=False)
    power = ascent.power

    def judge(log_f: float, log_z: float, log_z_prime: float) -> tuple[float, Slopes]:
        reject, reject_prime = np.log1p(-np.exp(log_z)), np.log1p(-np.exp(log_z_prime))
        value = float(np.logaddexp(log_f, power * reject_prime + (1 - power) * reject)) / (order - 1)
        ratio = reject_prime - reject
        return value, (0.0, power * ratio, (power - 1) * ratio)

    span = float(np.log1p(-setting.a_min) - np.log1p(-setting.a_max))
    first: list[Slopes] = [(0.0, power * r, (power - 1) * r) for r in np.linspace(-span, span, starts)]
    return _climb(ascent, first, judge)


def worst_visible_profile(setting: Setting, epsilon: float, *, add: bool) -> tuple[Train, IndependentGate, ...]:
    """The two candidates for the worst hockey-stick divergence of a visible trial at e^epsilon: per y, the corner
    that maximises the accept branch alone, and the one that maximises it together with the linear reject branch."""
    grid, log_v, _ = _law_nodes(setting, 2.0, np.empty(0))
    a, a_prime = _corner_values(setting, same=False)
    gamma, v = np.exp(epsilon), np.exp(log_v)
    found: list[IndependentGate] = []
    for reject in (False, True):
        scores = []
        for c in range(4):
            top, low = (v * a_prime[c], a[c]) if add else (np.full_like(v, a[c]), v * a_prime[c])
            gap = top - gamma * low
            scores.append(np.maximum(gap, 0.0) - (gap if reject else 0.0))
        train, gate = _as_mechanism(setting, grid, np.argmax(scores, axis=0), same=False)
        found.append(gate)
    return train, *found

"""Gates that leak as much as they can, found by ascent.

The ascent works on any mechanism whose training step has one record (D is silent, x moves the sum by the full
clipping norm), and whose validation set is so large that a_D(w) and a_1(w) can be any functions with values in
[a_min, a_max]. What it returns is an explicit mechanism, so its divergence is a lower bound on any valid bound.
"""

from __future__ import annotations

import numpy as np
from adversaries import Setting
from exact_quadrature import Array, Grid
from exact_trials import IndependentGate, Train
from numpy.typing import NDArray

IntArray = NDArray[np.intp]
_CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))

Mechanism = list[tuple[float, IndependentGate]]
"""Gates and how often each is picked by another coordinate of w, one that carries noise only."""


def silent_train(setting: Setting) -> Train:
    """D has no gradient, x the largest one."""
    return Train(gradients=(), extra=1.0, rate=setting.rate, sigma=setting.sigma)


def _corner_values(setting: Setting, same: bool) -> tuple[Array, Array]:
    levels = (setting.a_min, setting.a_max)
    a = np.array([levels[i] for i, _ in _CORNERS])
    a_one = a if same else np.array([levels[j] for _, j in _CORNERS])
    return a, (1 - setting.gate_rate) * a + setting.gate_rate * a_one


class _Ascent:
    """Corner choices on a grid in y, and the moments F = E[v^P a'^P a^(1-P)], Z = E[a], Z' = E[v a'] that they give.

    F is kept in units of exp(`log_unit`).
    """

    def __init__(self, setting: Setting, order: float, *, add: bool, same: bool, breaks: Array) -> None:
        self.setting, self.same = setting, same
        self.order, self.power = order, order if add else 1 - order
        mu = 1 / setting.sigma
        reach = 9 + order * mu
        grid = Grid(-reach, reach, breaks, min(0.4, 2 / (mu * np.sqrt(order))), points=10)
        self.y = grid.nodes.ravel()
        log_l = mu * self.y - mu**2 / 2
        if setting.rate == 1.0:
            self.log_v = log_l
        else:  # near v = 1 the digits of v - 1 matter, far out those of log v
            near = np.log1p(setting.rate * np.expm1(np.minimum(log_l, 1.0)))
            far = np.logaddexp(np.log1p(-setting.rate), np.log(setting.rate) + log_l)
            self.log_v = np.where(log_l < 1.0, near, far)
        log_w = -0.5 * self.y**2 - 0.5 * np.log(2 * np.pi) + grid.log_weights.ravel()
        self.a, self.a_prime = _corner_values(setting, same)
        log_k = self.power * np.log(self.a_prime) + (1 - self.power) * np.log(self.a)
        top = float((log_w + self.power * self.log_v).max())
        self.log_unit = top + float(log_k.max())
        self.k = np.exp(log_k - log_k.max())
        self.weights_f = np.exp(log_w + self.power * self.log_v - top)
        self.weights_z = np.exp(log_w)
        self.weights_z_prime = np.exp(log_w + self.log_v)
        self.log_f_unit = self.power * self.log_v - top

    def choose(self, slopes: tuple[float, float, float]) -> IntArray:
        """The corner that maximises e^s0 f + (P - 1) e^s1 a - P e^s2 v a' at every node (f in units)."""
        x, y, w = self.log_f_unit + slopes[0], slopes[1], self.log_v + slopes[2]
        top = np.maximum(np.maximum(x, y), w)
        x, y, w = np.exp(x - top), (self.power - 1) * np.exp(y - top), -self.power * np.exp(w - top)
        return np.argmax([x * self.k[c] + y * self.a[c] + w * self.a_prime[c] for c in range(4)], axis=0)

    def moments(self, choice: IntArray) -> Array:
        """(F in units, Z, Z') under a corner choice."""
        return np.array(
            [
                self.weights_f @ self.k[choice],
                self.weights_z @ self.a[choice],
                self.weights_z_prime @ self.a_prime[choice],
            ]
        )

    def best_at_ratio(self, log_r: float) -> tuple[IntArray, float]:
        """The corners that maximise F / ((1 - P) r^P Z + P r^(P-1) Z'), and their log(Z'/Z)."""
        choice = self.choose(
            (-700.0, 0.0, -log_r)
        )  # the least tangent: where it is not positive, no level will do
        for _ in range(40):
            f, z, z_prime = self.moments(choice)
            own = float(np.log(z_prime / z))
            tangent = (1 - self.power) + self.power * np.exp(own - log_r)
            if tangent <= 0 or f <= 0:
                break
            fresh = self.choose((float(np.log(z * tangent / f)), 0.0, -log_r))
            if (fresh == choice).all():
                break
            choice = fresh
        return choice, own

    def gate(self, choice: IntArray) -> IndependentGate:
        """The explicit gate of a corner choice."""
        jumps = np.nonzero(choice[1:] != choice[:-1])[0]
        pieces = choice[np.concatenate([jumps, [len(choice) - 1]])]
        levels = np.array([self.setting.a_min, self.setting.a_max])
        a = levels[[_CORNERS[c][0] for c in pieces]]
        a_one = a if self.same else levels[[_CORNERS[c][1] for c in pieces]]
        edges = (self.y[jumps] + self.y[jumps + 1]) / 2
        return IndependentGate(
            edges=tuple(float(e) for e in edges),
            rate=self.setting.gate_rate,
            without=a[None],
            with_extra=a_one[None],
        )


def worst_hidden(
    setting: Setting, order: float, *, add: bool, same: bool = False, passes: int = 2
) -> tuple[float, Mechanism]:
    """The gate that leaks most in the accepted candidate; `same` keeps it blind to x (a_1 = a).

    With T_r = (1 - P) r^P Z + P r^(P-1) Z' <= Z'^P Z^(1-P), the best gate for F/T_r has its own ratio Z'/Z; r is
    bisected until both agree. There two gates may tie, and noise picks one of them.
    """
    breaks: Array = np.empty(0)
    best, mechanism = -np.inf, []
    for _ in range(passes):
        ascent = _Ascent(setting, order, add=add, same=same, breaks=breaks)
        low, high = -np.log(setting.kappa) - 1e-9, np.log(setting.kappa) + 1e-9
        below = above = ascent.best_at_ratio(0.0)[0]
        while high - low > 1e-13:
            log_r = (low + high) / 2
            choice, own = ascent.best_at_ratio(log_r)
            low, high = (log_r, high) if own > log_r else (low, log_r)
            below, above = (below, choice) if own > log_r else (choice, above)
        ends = np.array([ascent.moments(below), ascent.moments(above)])
        gaps = ends[:, 2] - np.exp((low + high) / 2) * ends[:, 1]
        tie = float(np.clip(gaps[1] / (gaps[1] - gaps[0]), 0, 1)) if gaps[1] != gaps[0] else 0.5
        for share in (0.0, tie, 1.0):
            f, z, z_prime = np.log(share * ends[0] + (1 - share) * ends[1])
            power = ascent.power
            value = float(f + ascent.log_unit + (power - 1) * z - power * z_prime) / (order - 1)
            if value > best or share == tie:
                parts = ((share, ascent.gate(below)), (1 - share, ascent.gate(above)))
                best, mechanism = value, [(s, gate) for s, gate in parts if s > 0]
        breaks = np.array(sorted({e for choice in (below, above) for e in ascent.gate(choice).edges}))
    return best, mechanism


def worst_visible(
    setting: Setting, order: float, *, add: bool, starts: int = 9, passes: int = 2
) -> tuple[float, IndependentGate]:
    """Ascends the visible Renyi divergence from many reject ratios (1 - Z')/(1 - Z)."""
    span = float(np.log1p(-setting.a_min) - np.log1p(-setting.a_max))
    ratios = [float(r) for r in np.linspace(-span, span, starts)]
    breaks: Array = np.empty(0)
    for _ in range(passes):
        ascent = _Ascent(setting, order, add=add, same=False, breaks=breaks)
        power, best = ascent.power, -np.inf
        best_ratio, best_choice = 0.0, ascent.choose((0.0, 0.0, 0.0))
        for ratio in ratios:
            for _ in range(60):
                choice = ascent.choose((ascent.log_unit, power * ratio, (power - 1) * ratio))
                f, z, z_prime = ascent.moments(choice)
                reject, reject_prime = np.log1p(-z), np.log1p(-z_prime)
                accept = np.log(f) + ascent.log_unit
                value = float(np.logaddexp(accept, power * reject_prime + (1 - power) * reject)) / (order - 1)
                if value > best:
                    best, best_ratio, best_choice = value, float(reject_prime - reject), choice
                moved, ratio = abs(ratio - (reject_prime - reject)), float(reject_prime - reject)
                if moved < 1e-14:
                    break
        gate = ascent.gate(best_choice)
        ratios, breaks = [best_ratio], np.asarray(gate.edges)
    return best, gate


def worst_visible_profile(setting: Setting, epsilon: float, *, add: bool) -> list[IndependentGate]:
    """The two candidates for the worst hockey-stick divergence of a visible trial at e^epsilon: per y, the corner
    that maximises the accept branch alone, and the one that maximises it together with the linear reject branch."""
    ascent = _Ascent(setting, 2.0, add=add, same=False, breaks=np.empty(0))
    gamma, v = np.exp(epsilon), np.exp(ascent.log_v)
    found: list[IndependentGate] = []
    for reject in (False, True):
        scores = []
        for a, a_prime in zip(ascent.a, ascent.a_prime, strict=True):
            gap = v * a_prime - gamma * a if add else a - gamma * v * a_prime
            scores.append(np.maximum(gap, 0.0) - (gap if reject else 0.0))
        found.append(ascent.gate(np.argmax(scores, axis=0)))
    return found


def worst_hidden_profile(setting: Setting, epsilon: float, *, add: bool) -> list[IndependentGate]:
    """Good candidates for the worst hockey-stick divergence of the accepted candidate at e^epsilon.

    For a ratio r of the normalisers, corners maximise (v a'/r - gamma a)_+ - t a - l (v a' - r a) on a small grid of
    the multipliers l; t follows by iteration.
    """
    ascent = _Ascent(setting, 2.0, add=add, same=False, breaks=np.empty(0))
    gamma, v = np.exp(epsilon), np.exp(ascent.log_v)
    a, b = ascent.a[:, None], ascent.a_prime[:, None] * v
    best: list[tuple[float, IndependentGate]] = []
    for log_r in (
        np.linspace(-1, 1, 9) * np.log(setting.kappa) * min(1.0, 4 * setting.rate + 2 * setting.gate_rate)
    ):
        for multiplier in np.linspace(-1, 1, 9):
            r, level = np.exp(log_r), 0.0
            for _ in range(12):
                gap = b / r - gamma * a if add else a - gamma * b / r
                score = np.maximum(gap, 0.0) - level * a - multiplier * (b / r - a)
                choice = np.argmax(score, axis=0)
                z, z_prime = ascent.moments(choice)[1:]
                r = z_prime / z
                at = ascent.a[choice] / z, ascent.a_prime[choice] * v / z_prime
                gap = at[1] - gamma * at[0] if add else at[0] - gamma * at[1]
                value = float(ascent.weights_z @ np.maximum(gap, 0.0))
                best.append((value, ascent.gate(choice)))
                level = value
    return [gate for _, gate in sorted(best, key=lambda pair: -pair[0])[:3]]

"""`hidden` accounting, bound A: closed and simple, looser than bound B. Kept to compare and to explain.

The train step is reweighted by the acceptance (any b with values in [1, kappa]), the test step changes the weight by a
factor of bounded range. The first is bound B without a validation batch; the second costs alpha e_v^2 / 8 (Dong,
Durfee, Rogers 2020); the weak triangle inequality (Mironov 2017, Proposition 11) puts them together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.accounting.selective.choice import log_range
from discreet.accounting.selective.corners import acceptance_corners
from discreet.accounting.selective.curves import convex_curve
from discreet.accounting.selective.gates import Acceptance
from discreet.accounting.selective.hidden import hidden_rdp
from discreet.accounting.selective.likelihood import Floats, LikelihoodRatio


def reweighted_rdp(law: LikelihoodRatio, acceptance: Acceptance, orders: Floats) -> tuple[Floats, Floats]:
    """T_alpha(q, sigma, kappa): the train step under a weight of ratio at most kappa, both directions. Attained."""
    return hidden_rdp(law, acceptance_corners(replace(acceptance, sample_rate=0.0)), orders)


def separate_steps_rdp(law: LikelihoodRatio, acceptance: Acceptance, orders: Floats) -> tuple[Floats, Floats]:
    """Bound A: RDP per release, (record added, record removed).

    Theorem hidden-A. For p > 1 and r = p / (p - 1), R_alpha <= (alpha - 1/p) / (alpha - 1) * p alpha e_v^2 / 8 +
    T_beta with beta = r (alpha - 1/p) = (p alpha - 1) / (p - 1); when a record is removed the test is applied first.
    Instead of p, beta is taken from the grid of orders, p = (beta - 1) / (beta - alpha), and the best one is kept.
    """
    spread = log_range(acceptance.sample_rate, acceptance.kappa)
    if spread == 0.0:
        return reweighted_rdp(law, acceptance, orders)
    grid = np.unique(np.concatenate([orders, orders.max() * np.array([1.1, 1.25, 1.5, 2.0, 3.0, 5.0])]))
    alpha, beta = orders[:, None], grid[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(beta > alpha, (beta - 1.0) / (beta - alpha), np.inf)
        test = np.where(beta > alpha, (alpha - 1.0 / p) / (alpha - 1.0) * p * alpha * spread**2 / 8.0, np.inf)
    curves = []
    for step in reweighted_rdp(law, acceptance, grid):
        best = np.where(np.isnan(test), np.inf, test + step).min(axis=1)
        curves.append(convex_curve(orders, (orders - 1.0) * best))
    return curves[0], curves[1]

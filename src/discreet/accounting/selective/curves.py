"""What every Renyi curve has: (alpha - 1) R(alpha) is convex in alpha and 0 at 1."""

from __future__ import annotations

import numpy as np

from discreet.accounting.selective.likelihood import Floats


def convex_curve(orders: Floats, log_moments: Floats) -> Floats:
    """RDP from upper bounds on (alpha - 1) R(alpha), each improved by chords between the others.

    The largest convex function through 0 at order 1 below the points still bounds the true curve from above, because
    that is convex. An order at which a bound is loose, infinite or not a number is repaired by its neighbours.
    """
    rank = np.argsort(orders)
    x = np.append(1.0, orders[rank])
    y = np.append(0.0, np.where(np.isnan(log_moments), np.inf, log_moments)[rank])
    hull = [0]
    for i in range(1, len(x)):
        if not np.isfinite(y[i]):
            continue
        while len(hull) > 1 and _above(x, y, hull[-2], hull[-1], i):
            hull.pop()
        hull.append(i)
    lowest = np.interp(x, x[hull], y[hull])
    lowest[x > x[hull[-1]]] = np.inf
    curve = np.empty_like(orders)
    curve[rank] = np.minimum(lowest, y)[1:] / (x[1:] - 1.0)
    return np.maximum(curve, 0.0)


def _above(x: Floats, y: Floats, left: int, middle: int, right: int) -> bool:
    return bool((y[middle] - y[left]) * (x[right] - x[left]) >= (y[right] - y[left]) * (x[middle] - x[left]))

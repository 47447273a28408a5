"""A cap on consecutive trials, so that a release under `hidden` accounting always ends.

The idealised mechanism repeats until acceptance. The real one stops with an error after K trials. With an acceptance
probability of at least a_min the two differ with probability at most eta = T (1 - a_min)^K over T releases, and a
coupling gives the real one (epsilon, delta + (1 + e^epsilon) eta).
"""

from __future__ import annotations

import math

from discreet.accounting.events import checked_number

_SHARE_OF_DELTA = 1e-3


def trial_cap(*, epsilon: float, delta: float, lowest_acceptance: float, releases: int) -> int:
    """The smallest cap K on consecutive trials whose price is at most a thousandth of `delta`."""
    low = checked_number("lowest_acceptance", lowest_acceptance, low=0.0, high=1.0, open_low=True)
    checked_number("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True)
    checked_number("epsilon", epsilon, low=0.0)
    if releases < 1:
        raise ValueError(f"releases must be at least 1, not {releases!r}")
    if low == 1.0:
        return 1
    log_target = math.log(_SHARE_OF_DELTA * delta / releases) - _log_one_plus_exp(epsilon)
    return max(1, math.ceil(log_target / math.log1p(-low)))


def capped_delta(*, epsilon: float, delta: float, lowest_acceptance: float, releases: int, cap: int) -> float:
    """The delta that holds for the capped mechanism at the same epsilon."""
    low = checked_number("lowest_acceptance", lowest_acceptance, low=0.0, high=1.0, open_low=True)
    if cap < 1:
        raise ValueError(f"cap must be at least 1, not {cap!r}")
    if low == 1.0:
        return delta
    log_price = _log_one_plus_exp(epsilon) + math.log(max(releases, 1)) + cap * math.log1p(-low)
    return min(1.0, delta + math.exp(min(log_price, 0.0)))


def _log_one_plus_exp(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))

"""What a certificate says of a record that occurs several times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.accounting.composition import profile
from discreet.accounting.filter import RenyiFilter, open_filter
from discreet.accounting.history import LogHeader
from discreet.accounting.profiles import Floats, Profile
from discreet.accounting.rdp import delta_from_rdp
from discreet.accounting.termination import Termination
from discreet.accounting.tradeoff import group_epsilon


def promised_profile(header: LogHeader) -> Profile:
    """The profile that the certificate of a run stands for, the price of a cap on trials included."""
    guard = open_filter(header)
    if isinstance(guard, RenyiFilter):
        limit = guard.limit

        def within(epsilons: Floats) -> Floats:
            return np.array([delta_from_rdp(limit, float(each)) for each in np.atleast_1d(epsilons)])

        found = Profile(add=within, remove=within)
    else:
        assert header.plan is not None, "a planned filter has a plan"
        found = profile(header.plan.charges(), accounting=header.accounting, calculus=header.calculus)
    cap = header.termination
    if cap is None:
        return found
    return Profile(add=_paid(found.add, cap), remove=_paid(found.remove, cap))


def epsilon_of_copies(header: LogHeader, copies: int) -> float:
    """The epsilon, at the budget's delta, of adding or removing all copies of a record that occurs so often.

    Guarantee: that of `tradeoff.group_delta` for any group of so many records. Infinite where nothing can be said.
    """
    return group_epsilon(promised_profile(header), copies, header.budget.delta)


def _paid(uncapped: Callable[[Floats], Floats], cap: Termination) -> Callable[[Floats], Floats]:
    def paid(epsilons: Floats) -> Floats:
        deltas = uncapped(epsilons)
        return np.array(
            [cap.delta(float(one), float(other)) for one, other in zip(epsilons, deltas, strict=True)]
        )

    return paid

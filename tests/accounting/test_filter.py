import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from discreet.accounting.budget import Budget
from discreet.accounting.calibration import calibrate_releases
from discreet.accounting.composition import epsilon
from discreet.accounting.events import Event, Gaussian, PoissonGaussian
from discreet.accounting.filter import PlannedFilter, RenyiFilter, open_filter
from discreet.accounting.history import ChargePlan, LogHeader
from discreet.accounting.log import EventLog, read_log
from discreet.accounting.rdp import ORDERS, certified_rdp, epsilon_from_rdp, rdp_curve
from discreet.errors import BudgetExhausted, UserError

A = PoissonGaussian(sample_rate=0.01, noise_multiplier=1.5)
B = PoissonGaussian(sample_rate=0.01, noise_multiplier=1.2)
S = Gaussian(noise_multiplier=40.0)
BUDGET = Budget(epsilon=1.0, delta=1e-5)
PLAN = ChargePlan(releases=((A, 300), (B, 200)), once=(("statistics", S),))


def header(**changes):
    values = {"budget": BUDGET, "accounting": "visible", "secure_noise": True, "plan": PLAN}
    return LogHeader(**(values | changes))


def order_header(order, **changes):
    return header(calculus="rdp", filter="renyi-order", order=order, plan=None, **changes)


def test_the_plan_passes_release_by_release_and_not_one_more(tmp_path):
    with EventLog.create(tmp_path, header()) as log:
        guard = open_filter(log.history.header, log)
        guard.charge_once("statistics", S)
        for release in range(0, 300, 50):
            guard.charge(release, A, count=50)
        guard.charge(300, B, count=199)
        guard.charge(499, B)
        before = (tmp_path / "events.jsonl").read_bytes()
        with pytest.raises(BudgetExhausted, match="all 500 planned releases"):
            guard.charge(500, B)
        with pytest.raises(BudgetExhausted, match="nothing named 'more' is planned"):
            guard.charge_once("more", S)
        assert guard.charged == 500
        assert (tmp_path / "events.jsonl").read_bytes() == before


@pytest.mark.parametrize(("release", "event", "count"), [(0, B, 1), (0, A, 301), (0, S, 1)])
def test_whatever_deviates_from_the_plan_is_refused_and_not_charged(tmp_path, release, event, count):
    with EventLog.create(tmp_path, header()) as log:
        guard = open_filter(header(), log)
        with pytest.raises(UserError, match="planned as"):
            guard.charge(release, event, count)
        with pytest.raises(UserError, match="'statistics' is planned as"):
            guard.charge_once("statistics", A)
        assert guard.charged == log.charged == 0


def test_a_plan_above_the_budget_is_refused_before_it_starts():
    most = calibrate_releases(lambda _: A, BUDGET, limit=10**5)
    PlannedFilter(header(plan=ChargePlan(releases=((A, most),))))
    with pytest.raises(BudgetExhausted, match=r"more than the budget of 1$"):
        PlannedFilter(header(plan=ChargePlan(releases=((A, most + 1),))))


@pytest.mark.parametrize("filter_header", [header(), order_header(16.0)])
def test_an_interrupted_run_goes_on_where_it_was(tmp_path, filter_header):
    with EventLog.create(tmp_path, filter_header) as log:
        guard = open_filter(filter_header, log)
        guard.charge_once("statistics", S)
        guard.charge(0, A, count=120)
    with EventLog.resume(tmp_path) as log:
        guard = open_filter(log.history.header, log)
        assert guard.charged == 120
        guard.charge(100, A, count=20)
        guard.charge_once("statistics", S)
        assert read_log(tmp_path).charged == 120
        guard.charge(120, A)
        assert read_log(tmp_path).charged == 121


def test_a_log_that_deviates_from_its_plan_is_refused(tmp_path):
    with EventLog.create(tmp_path, header()) as log:
        log.charge(0, B)
        with pytest.raises(UserError, match="planned as"):
            open_filter(header(), log)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([A, B, S]), st.integers(1, 400)), min_size=1, max_size=12),
    st.booleans(),
)
def test_no_adaptive_path_passes_a_renyi_filter_beyond_its_budget(path, by_curve):
    chosen = header(calculus="rdp", filter="renyi-curve") if by_curve else order_header(12.0)
    guard, spent = RenyiFilter(chosen), np.zeros_like(ORDERS)
    for event, count in path:
        try:
            guard.charge(guard.charged, event, count)
        except BudgetExhausted:
            assert not (spent + count * certified_rdp(event) <= guard.limit).all()
        else:
            spent += count * certified_rdp(event)
    assert epsilon_from_rdp(spent, BUDGET.delta) <= guard.certified_epsilon(BUDGET.delta) * (1 + 1e-9)
    assert guard.certified_epsilon(BUDGET.delta) <= BUDGET.epsilon


def test_a_renyi_filter_lets_its_own_plan_pass_and_not_one_more():
    guard = RenyiFilter(header(calculus="rdp", filter="renyi-curve"))
    guard.charge_once("statistics", S)
    for release in range(300):
        guard.charge(release, A)
    guard.charge(300, B, count=200)
    for event in (A, B, S):
        with pytest.raises(BudgetExhausted, match="500 releases have been charged"):
            guard.charge(500, event)
    assert guard.charged == 500
    guard.charge(499, B)  # paid for


def test_a_single_order_is_used_up_to_the_last_release():
    guard, order = RenyiFilter(order_header(12.0)), int(np.flatnonzero(ORDERS == 12.0)[0])
    one = certified_rdp(B)[order]
    most = int(guard.limit[order] / one)
    for release in range(most):
        guard.charge(release, B)
    with pytest.raises(BudgetExhausted, match=f"{most} releases have been charged"):
        guard.charge(most, B)


def test_renyi_filters_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="composes by the calculus 'rdp'"):
        RenyiFilter(header(filter="renyi-curve"))
    with pytest.raises(ValueError, match="one of the default orders"):
        RenyiFilter(order_header(12.34))
    with pytest.raises(UserError, match=r"order 1\.1 is too small"):
        RenyiFilter(order_header(1.1))
    with pytest.raises(BudgetExhausted, match="more than the budget"):
        RenyiFilter(header(calculus="rdp", filter="renyi-curve", plan=ChargePlan(releases=((B, 3000),))))


@dataclass(frozen=True, kw_only=True)
class Leak(Event):
    """With that probability it gives the record away by that much, and otherwise next to nothing."""

    kind: ClassVar[str] = "leak"
    probability: float
    loss: float

    def laws(self):
        hit, miss = self.probability, self.probability * math.exp(-self.loss)
        return np.array([hit, 1 - hit]), np.array([miss, 1 - miss])


@rdp_curve.register
def _(event: Leak, orders, accounting):
    with_record, without = (np.log(law) for law in event.laws())
    powers = orders[:, None]
    both = [
        np.logaddexp.reduce(powers * p + (1 - powers) * q, axis=1)
        for p, q in ((with_record, without), (without, with_record))
    ]
    return np.maximum(*both) / (orders - 1)


def at(event, order):
    return float(certified_rdp(event, np.array([order]))[0])


TARGET = Budget(epsilon=8.0, delta=1e-5)
FIRST = Leak(probability=1e-3, loss=1.0)
LOW, HIGH = 3.0, 20.0


def allowance(order):
    """All that may be spent at one order, if that is the only one."""
    log_delta = math.log(TARGET.delta * order)
    return TARGET.epsilon - math.log1p(-1 / order) + log_delta / (order - 1)


def leak_that_fits(order, lost):
    """The leak that uses up what `FIRST` leaves at `order`, where `lost` has been lost already.

    Its loss is the one at which the conversion of that order to delta wastes nothing.
    """
    loss = TARGET.epsilon + math.log(order / (order - 1)) - lost
    left = allowance(order) - at(FIRST, order)

    def excess(log_probability):
        return at(Leak(probability=math.exp(log_probability), loss=loss), order) - left

    return Leak(probability=math.exp(optimize.brentq(excess, -40.0, -1e-3, xtol=1e-12)), loss=loss)


def second_leaks():
    """The second release in view of the first: each path fills the budget of another order."""
    return {"leaked": leak_that_fits(HIGH, lost=FIRST.loss), "quiet": leak_that_fits(LOW, lost=0.0)}


def exact_delta(first, seconds):
    """The hockey-stick divergence of the two-step adaptive release, by enumeration."""
    total = 0.0
    for i, branch in enumerate(("leaked", "quiet")):
        p1, q1 = (law[i] for law in first.laws())
        p2, q2 = seconds[branch].laws()
        total += np.maximum(p1 * p2 - math.exp(TARGET.epsilon) * q1 * q2, 0.0).sum()
    return total


def test_some_order_still_has_budget_is_not_a_filter():
    """Different paths stopped by different orders: delta is missed by nearly a factor of 2 in this very case."""
    seconds = second_leaks()

    def tempting(spent):
        return any(
            sum(at(event, order) for event in spent) <= allowance(order) * (1 + 1e-9) for order in (LOW, HIGH)
        )

    for second in seconds.values():
        assert tempting([FIRST, second])  # on every path the tempting filter lets the second release pass
    assert exact_delta(FIRST, seconds) > 1.9 * TARGET.delta


@pytest.mark.parametrize("order", [LOW, HIGH])
def test_a_filter_by_one_order_refuses_one_of_the_paths(order):
    seconds = second_leaks()
    made = {}
    for branch, second in seconds.items():
        guard = RenyiFilter(order_header(order, budget=TARGET))
        guard.charge(0, FIRST)
        try:
            guard.charge(1, Leak(probability=second.probability * (1 - 1e-6), loss=second.loss))
            made[branch] = second
        except BudgetExhausted:
            made[branch] = Leak(probability=1e-300, loss=0.0)
    assert any(second.loss == 0.0 for second in made.values())
    assert exact_delta(FIRST, made) <= TARGET.delta


def test_the_planned_filter_gives_the_best_calculus_of_the_whole_plan():
    guard = open_filter(header())
    assert guard.certified_epsilon(1e-5) == epsilon(PLAN.charges(), 1e-5)
    assert guard.certified_epsilon(1e-5) < epsilon(PLAN.charges(), 1e-5, calculus="rdp")

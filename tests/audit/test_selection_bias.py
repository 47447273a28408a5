"""The data set on which DPSUR's formula is too small: its coins are the theory's, and prove what is said."""

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.stats import norm

from discreet.audit.selection_bias import audit_selection, composed_coins

GATE_RATE, SIGMA_V, BETA = 20 / 31, 2.0, -7.0
LOW, HIGH = norm.cdf((BETA + np.array([-1, 1])) / (2 * SIGMA_V))


def share_up(present: bool) -> float:
    """The share of accepted moves upwards: bad without x in the validation batch, good with it."""
    q = GATE_RATE if present else 0.0
    up = (1 - q) * LOW + q * HIGH
    down = (1 - q) * HIGH + q * LOW
    return up / (up + down)


def test_real_runs_have_the_coins_of_the_theory():
    torch.set_num_threads(1)
    found = audit_selection(trials=1500, confidence=0.9999, seed=3)
    # A coin of the empty validation batch, and of the training records, moves the shares by less than a hundredth.
    assert share_up(False) < found.up_without + 0.01
    assert share_up(True) > found.up_with - 0.01
    assert found.up_without < share_up(False) + 0.35
    assert found.up_with > share_up(True) - 0.35
    assert min(found.moves) > 30


def test_the_coins_of_the_theory_cost_more_than_claimed_and_less_than_certified():
    from discreet.accounting import Budget, epsilon
    from discreet.accounting.selective.claimed import WHOLE_ORDERS, claimed_epsilon
    from discreet.audit.selection_bias import recipe

    event = recipe(10).plan(31, Budget(epsilon=1e6, delta=1e-5)).event(0)
    for updates in (2, 5, 19):
        claimed = claimed_epsilon([(event, updates)], 1e-5, orders=WHOLE_ORDERS)
        shown = composed_coins(share_up(False), share_up(True), updates, 1e-5)
        certified = epsilon([(event, updates)], 1e-5, accounting="hidden")
        assert shown < certified
        if updates == 19:
            assert shown > 1.7 * claimed


def test_what_40000_trials_showed_is_above_the_claim():
    """The bounds on the shares that the recorded audit found, in docs/audits.md."""
    assert composed_coins(0.26466, 0.54914, 19, 1e-5) == pytest.approx(12.64, abs=0.01)


def test_coins_that_cannot_be_told_apart_prove_nothing():
    assert composed_coins(0.4, 0.4, 50, 1e-5) == 0.0
    assert composed_coins(0.5, 0.4, 50, 1e-5) == 0.0


def test_no_test_on_simulated_tosses_beats_the_composition():
    """Second source: the best threshold found on a million simulated sums."""
    draw = np.random.default_rng(0)
    tosses, low, high = 12, 0.3, 0.6
    shown = composed_coins(low, high, tosses, 1e-3)
    sums = draw.binomial(tosses, low, 1_000_000), draw.binomial(tosses, high, 1_000_000)
    best = 0.0
    for cut in range(tosses + 1):
        alarms, hits = (sums[0] >= cut).mean(), (sums[1] >= cut).mean()
        if alarms * 1e6 > 100:
            best = max(best, np.log((hits - 1e-3) / alarms))
        misses, passed = 1 - hits, 1 - alarms
        if misses * 1e6 > 100:
            best = max(best, np.log((passed - 1e-3) / misses))
    assert best <= shown + 0.15
    assert stats.binom.sf(tosses - 1, tosses, low) < 1e-4

"""Figures of attacks, against definitions spelled out."""

import numpy as np
import pytest

from discreet.audit.measures import area, curve, hits, measured
from discreet.errors import UserError

DRAW = np.random.default_rng(0)
MEMBER = DRAW.random(400) < 0.4
SCORES = np.round(DRAW.standard_normal(400) + 0.8 * MEMBER, 1)  # rounded: there are ties


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    pairs = SCORES[MEMBER][:, None] - SCORES[~MEMBER][None, :]
    assert area(SCORES, MEMBER) == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2)


@pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 0.5])
def test_hits_are_the_most_at_so_many_false_alarms(share):
    best = 0.0
    for threshold in np.append(np.unique(SCORES), -10):
        if (SCORES[~MEMBER] > threshold).mean() <= share:
            best = max(best, (SCORES[MEMBER] > threshold).mean())
    assert hits(SCORES, MEMBER, share) == pytest.approx(best)


def test_the_curve_ends_where_everybody_is_accused_and_has_the_area():
    alarms, found = curve(SCORES, MEMBER)
    assert (alarms[-1], found[-1]) == (1.0, 1.0)
    assert np.trapezoid(np.append(0, found), np.append(0, alarms)) == pytest.approx(area(SCORES, MEMBER))


def test_scores_that_know_nothing_are_at_guessing_within_their_intervals():
    draw = np.random.default_rng(1)
    found = measured(draw.standard_normal(2000), draw.random(2000) < 0.5, seed=2)
    for estimate, guess in (
        (found.auc, 0.5),
        (found.balanced_accuracy, 0.5),
        (found.hits_at_hundredth, 0.01),
    ):
        assert estimate.low <= guess <= estimate.high


def test_a_threshold_chosen_on_the_same_records_would_see_more_than_there_is():
    """The planted fault: the best threshold on noise, found and measured on the same few records."""
    honest, flattered = [], []
    for seed in range(40):
        draw = np.random.default_rng(seed)
        scores, member = draw.standard_normal(60), draw.random(60) < 0.5
        honest.append(measured(scores, member, seed=seed).balanced_accuracy.value)
        alarms, found = curve(scores, member)
        flattered.append(float(((found + 1 - alarms) / 2).max()))
    assert abs(np.mean(honest) - 0.5) < 0.03
    assert np.mean(flattered) > 0.55


def test_the_interval_narrows_with_more_records():
    def width(count):
        draw = np.random.default_rng(3)
        member = draw.random(count) < 0.5
        found = measured(draw.standard_normal(count) + member, member, seed=4).auc
        assert found.low < found.value < found.high
        return found.high - found.low

    assert width(4000) < 0.5 * width(400)


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(UserError, match="one kind"):
        measured(np.zeros(3), np.ones(3, dtype=bool), seed=0)
    with pytest.raises(UserError, match="not a number"):
        measured(np.array([0.0, np.nan]), np.array([True, False]), seed=0)

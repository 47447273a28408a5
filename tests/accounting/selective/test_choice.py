"""The choice between accepted candidates, against simulation-free small cases."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from discreet.accounting import Accounting, UnknownEventError, epsilon
from discreet.accounting.rdp import rdp_curve
from discreet.accounting.selective import BufferedChoice, BufferedRelease, GatedTrial, LossGate, ScoredTrial
from discreet.accounting.selective.choice import chosen_corners
from discreet.accounting.selective.likelihood import LikelihoodRatio

SETTINGS = {
    "sample_rate": 0.3,
    "noise_multiplier": 2.0,
    "gate_rate": 0.2,
    "gate_multiplier": 1.0,
    "gate_threshold": -0.5,
}
ORDERS = np.array([1.5, 2.0, 4.0, 8.0])
SCORES = np.linspace(-14.0, -0.5, 1201)  # below the threshold, in units of C_v


def score_density(metric):
    return norm.pdf(SCORES, metric, 2.0 * SETTINGS["gate_multiplier"])


def chosen_law(mass, densities):
    """The law of the candidate with the smaller of two accepted scores; `densities` are of (candidate, score)."""
    accepted = mass[:, None] * densities
    step = SCORES[1] - SCORES[0]
    accepted = accepted / (accepted.sum() * step)
    other = accepted.sum(axis=0)
    tail = (other.sum() - np.cumsum(other) + other / 2.0) * step
    return (accepted * tail).sum(axis=1) * 2.0 * step


def explicit_pair(metrics, alone):
    """Both laws for a candidate with a metric per cell of the normal variable, and another one with the record."""
    rate, sigma = SETTINGS["sample_rate"], SETTINGS["noise_multiplier"]
    edges = np.linspace(-4.0, 4.0, len(metrics) - 1)
    without = np.diff(np.concatenate([[0.0], norm.cdf(edges), [1.0]]))
    moved = np.diff(np.concatenate([[0.0], norm.cdf(edges - 1.0 / sigma), [1.0]]))
    scores, own = (np.array([score_density(m) for m in each]) for each in (metrics, alone))
    rate_v = SETTINGS["gate_rate"]
    p = chosen_law(without, scores)
    q = chosen_law((1 - rate) * without + rate * moved, (1 - rate_v) * scores + rate_v * own)
    return p / p.sum(), q / q.sum()


def test_the_chosen_candidate_stays_below_both_ways_of_charging_it():
    random = np.random.default_rng(3)
    bounds = [
        rdp_curve(BufferedRelease(**SETTINGS, charge_all=way), ORDERS, Accounting.HIDDEN)
        for way in (False, True)
    ]
    worst = np.zeros_like(ORDERS)
    for _ in range(60):
        metrics, alone = (
            np.sort(random.choice([-1.0, 1.0], 12))[:: random.choice([-1, 1])] for _ in range(2)
        )
        p, q = explicit_pair(metrics, alone)
        for first, second in ((p, q), (q, p)):
            renyi = [np.log((first**order * second ** (1 - order)).sum()) / (order - 1) for order in ORDERS]
            worst = np.maximum(worst, renyi)
    for bound in bounds:
        assert np.all(worst <= bound)
    # The twin: a single gated release would be charged too little for what a choice of two does.
    assert np.any(worst > 0.5 * rdp_curve(GatedTrial(**SETTINGS), ORDERS, Accounting.HIDDEN))


@pytest.mark.parametrize("tie", [0.0, 0.4])
def test_kappa_of_a_choice_is_the_largest_ratio_of_weights(tie):
    gate = LossGate(sample_rate=0.2, noise_multiplier=1.0, threshold=-0.5)
    corners = chosen_corners(LikelihoodRatio(0.0, 1.0), BufferedChoice(gate=gate, tie=tie))
    kappa = corners.without.max() / corners.without.min()
    ratios = []
    for other in np.linspace(-1.0, 1.0, 21):
        density = score_density(other)
        tail = 1.0 - np.cumsum(density) / density.sum()
        mixed = (
            np.interp(SCORES - tie, SCORES, tail, left=1.0, right=0.0)
            + np.interp(SCORES + tie, SCORES, tail, left=1.0, right=0.0)
        ) / 2.0
        ratios.append((score_density(-1.0) * mixed).sum() / (score_density(1.0) * mixed).sum())
    assert max(ratios) <= kappa * (1.0 + 2e-3)
    assert max(ratios) == pytest.approx(kappa, rel=0.03)


def test_a_larger_buffer_costs_more():
    curves = [
        rdp_curve(BufferedRelease(**SETTINGS, candidates=n), ORDERS, Accounting.HIDDEN) for n in (1, 2, 3, 4)
    ]
    assert all(np.all(less < more) for less, more in itertools.pairwise(curves))
    np.testing.assert_allclose(curves[0], rdp_curve(GatedTrial(**SETTINGS), ORDERS, Accounting.HIDDEN))


def test_a_choice_is_charged_by_its_trials_when_trials_are_visible():
    with pytest.raises(UnknownEventError, match="charge its trials"):
        epsilon([(BufferedRelease(**SETTINGS), 10)], 1e-5, accounting="visible")


def test_a_released_score_costs_at_most_what_publishing_everything_costs():
    orders = np.array([1.5, 3.0, 10.0])
    scored = rdp_curve(ScoredTrial(**SETTINGS), orders, Accounting.VISIBLE)
    gated = rdp_curve(GatedTrial(**SETTINGS), orders, Accounting.VISIBLE)
    assert np.all(gated < scored)
    for calculus in ("rdp", "pld"):
        with_score = epsilon([(ScoredTrial(**SETTINGS), 20)], 1e-5, calculus=calculus)
        without = epsilon([(GatedTrial(**SETTINGS), 20)], 1e-5, calculus=calculus)
        assert without < with_score


@pytest.mark.parametrize(
    ("settings", "field"),
    [({"candidates": 0}, "candidates"), ({"candidates": 3, "tie": 0.1}, "tie"), ({"tie": -1.0}, "tie")],
)
def test_a_bad_choice_is_refused_by_name(settings, field):
    with pytest.raises(ValueError, match=field):
        BufferedRelease(**SETTINGS, **settings)

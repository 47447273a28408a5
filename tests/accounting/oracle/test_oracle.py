"""The oracle itself: against multiprecision integrals, closed forms and its own two ways to the same number."""

from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from adversaries import Setting, random_scored_toy, random_toy
from ascents import silent_train, worst_hidden, worst_visible
from exact_batches import OrthogonalBatches
from exact_choice import exact_scored_rdp
from exact_quadrature import Grid, logsumexp
from exact_trials import (
    BatchGate,
    IndependentGate,
    Train,
    exact_hidden_profile,
    exact_hidden_rdp,
    exact_visible_profile,
    exact_visible_rdp,
    mixed_law,
    trial_law,
)
from scipy.special import comb
from scipy.stats import norm

SETTING = Setting(rate=0.2, sigma=0.9, gate_rate=0.3, a_min=0.15, a_max=0.7)


def _multiprecision(train, gate, function):
    """Integral over w of function(p(w) a(w), p'(w) a'(w)), by tanh-sinh between the jumps, in 30 digits."""
    weights = [mp.mpf(1)]
    subsets = [()]
    for index in range(len(train.gradients)):
        subsets = [(*s, index) for s in subsets] + subsets
        weights = [w * train.rate for w in weights] + [w * (1 - mp.mpf(train.rate)) for w in weights]

    def density(w, shift):
        centres = [(mp.fsum(train.gradients[i] for i in s) + shift) / train.sigma for s in subsets]
        return mp.fsum(p * mp.npdf(w, c) for p, c in zip(weights, centres, strict=True))

    def value(w):
        a, a_prime = (mp.mpf(float(x[0])) for x in gate.acceptance(np.array([float(w)])))
        p = density(w, mp.mpf(0))
        return function(
            p * a, a_prime * ((1 - train.rate) * p + train.rate * density(w, mp.mpf(train.extra)))
        )

    ends = sorted({mp.mpf(-30), mp.mpf(30), *map(mp.mpf, gate.edges), *map(mp.mpf, range(-9, 28, 3))})
    return mp.fsum(mp.quad(value, [low, high]) for low, high in pairwise(ends))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_toy_divergences_agree_with_multiprecision_integrals(seed):
    train, gate = random_toy(np.random.default_rng(seed), SETTING)
    law, order = trial_law(train, gate, 5.5), 5.5
    with mp.workdps(20):
        z, z_prime = (_multiprecision(train, gate, f) for f in (lambda p, q: p, lambda p, q: q))
        add = _multiprecision(train, gate, lambda p, q: q**order * p ** (1 - order))
        remove = _multiprecision(train, gate, lambda p, q: p**order * q ** (1 - order))
        hidden = (
            mp.log(add * z ** (order - 1) * z_prime**-order) / (order - 1),
            mp.log(remove * z_prime ** (order - 1) * z**-order) / (order - 1),
        )
        visible = (
            mp.log(add + (1 - z_prime) ** order * (1 - z) ** (1 - order)) / (order - 1),
            mp.log(remove + (1 - z) ** order * (1 - z_prime) ** (1 - order)) / (order - 1),
        )
    assert exact_hidden_rdp(law, order) == pytest.approx([float(x) for x in hidden], rel=1e-10)
    assert exact_visible_rdp(law, order) == pytest.approx([float(x) for x in visible], rel=1e-10)


def test_without_a_gate_the_plain_sampled_gaussian_remains():
    train = Train(gradients=(0.0,), extra=1.0, rate=0.1, sigma=1.3)
    gate = IndependentGate(edges=(), rate=0.5, without=np.full((2, 1), 0.4), with_extra=np.full((2, 1), 0.4))
    order = 9
    moment = sum(
        comb(order, k) * 0.9 ** (order - k) * 0.1**k * np.exp(k * (k - 1) / (2 * 1.3**2))
        for k in range(order + 1)
    )
    law = trial_law(train, gate, order)
    assert exact_hidden_rdp(law, order)[0] == pytest.approx(np.log(moment) / (order - 1), rel=1e-11)
    thinned = np.log(0.6 + 0.4 * moment) / (order - 1)
    assert exact_visible_rdp(law, order)[0] == pytest.approx(thinned, rel=1e-11)


def test_profiles_of_a_plain_gaussian_are_the_analytic_ones():
    train = Train(gradients=(), extra=1.0, rate=1.0, sigma=2.0)
    gate = IndependentGate(
        edges=(0.3,), rate=0.0, without=np.full((1, 2), 0.6), with_extra=np.full((1, 2), 0.6)
    )
    for epsilon in (0.0, 0.2, 1.0):
        exact = norm.cdf(0.25 - 2 * epsilon) - np.exp(epsilon) * norm.cdf(-0.25 - 2 * epsilon)
        assert exact_hidden_profile(train, gate, epsilon) == pytest.approx((exact, exact), rel=1e-11)
        assert exact_visible_profile(train, gate, epsilon) == pytest.approx(
            (0.6 * exact, 0.6 * exact), rel=1e-11
        )


def test_batch_gates_agree_on_one_and_on_two_directions():
    rng = np.random.default_rng(5)
    without, with_extra = rng.uniform(0.2, 0.7, 2), rng.uniform(0.2, 0.7, 2)
    train = Train(gradients=(0.0,), extra=1.0, rate=0.3, sigma=1.1)
    law = trial_law(train, BatchGate(without=without, with_extra=with_extra), 6.0)
    merged = OrthogonalBatches(
        rate=0.3,
        sigma=1.1,
        log_probability=np.log([0.7, 0.3]),
        centres=np.zeros(2),
        without=without,
        with_extra=with_extra,
    )
    assert merged.exact_hidden_rdp(6.0) == pytest.approx(exact_hidden_rdp(law, 6.0), rel=1e-10)
    assert merged.exact_visible_rdp(6.0) == pytest.approx(exact_visible_rdp(law, 6.0), rel=1e-10)


def test_a_score_tells_more_than_acceptance_alone():
    train, gate = random_scored_toy(np.random.default_rng(3), 0.2, 1.0, 0.3, 0.8, -0.5)
    deviation = gate.deviation
    alone = IndependentGate(
        edges=gate.edges,
        rate=gate.rate,
        without=norm.cdf((gate.beta - gate.without) / deviation),
        with_extra=norm.cdf((gate.beta - gate.with_extra) / deviation),
    )
    law = trial_law(train, alone, 4.0)
    for with_score, without_score in zip(
        exact_scored_rdp(train, gate, 4.0), exact_hidden_rdp(law, 4.0), strict=True
    ):
        assert with_score > without_score > 0


@pytest.mark.parametrize("add", [True, False])
def test_the_ascent_reports_what_its_explicit_gate_leaks(add):
    order, side = 7.0, 0 if add else 1
    value, parts = worst_hidden(SETTING, order, add=add)
    law = mixed_law([(share, trial_law(silent_train(SETTING), gate, order)) for share, gate in parts])
    assert exact_hidden_rdp(law, order)[side] == pytest.approx(value, rel=1e-8)
    value, gate = worst_visible(SETTING, order, add=add)
    law = trial_law(silent_train(SETTING), gate, order)
    assert exact_visible_rdp(law, order)[side] == pytest.approx(value, rel=1e-8)


def test_no_gate_among_many_random_ones_leaks_more_than_the_ascents():
    rng, order = np.random.default_rng(11), 4.0
    worst = [
        max(f(SETTING, order, add=add)[0] for add in (True, False)) for f in (worst_hidden, worst_visible)
    ]
    for _ in range(300):
        law = trial_law(*random_toy(rng, SETTING), order)
        assert max(exact_hidden_rdp(law, order)) <= worst[0] * (1 + 1e-8)
        assert max(exact_visible_rdp(law, order)) <= worst[1] * (1 + 1e-8)


def test_the_oracle_refuses_to_lose_a_term():
    with pytest.raises(FloatingPointError):
        logsumexp(np.array([0.0, np.nan]))
    with pytest.raises(FloatingPointError):
        Grid(-1.0, 1.0, np.empty(0), 0.5).log_integral(np.full((4, 16), np.inf))

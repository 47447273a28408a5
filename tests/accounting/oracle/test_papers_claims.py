"""Explicit neighbouring data sets whose divergence exceeds what the papers charge, at the papers' own settings."""

import numpy as np
import pytest
from adversaries import Metric, Setting
from ascents import silent_train, worst_hidden
from exact_batches import OrthogonalBatches
from exact_choice import ScoredGate, exact_scored_rdp
from exact_trials import IndependentGate, Train, exact_hidden_rdp, mixed_law, trial_law
from scipy.special import comb, logsumexp
from scipy.stats import binom, norm


def sampled_gaussian(rate, sigma, order):
    """The papers' formula for a whole order: 1/(a-1) log sum C(a,i) (1-q)^(a-i) q^i exp((i^2-i)/2s^2)."""
    i = np.arange(order + 1)
    terms = (order - i) * np.log1p(-rate) + i * np.log(rate) + (i * i - i) / (2 * sigma**2)
    return float(logsumexp(terms, b=comb(order, i)) / (order - 1))


DPSUR = {
    "MNIST": (60000, 1024, 2.0),
    "FMNIST": (60000, 2048, 4.0),
    "CIFAR-10": (50000, 8192, 11.0),
}


@pytest.mark.parametrize("name", DPSUR)
@pytest.mark.parametrize("order", [2, 8, 16])
def test_an_accepted_update_of_dpsur_costs_more_than_its_paper_charges(name, order):
    """D has n copies of a record with no gradient left, x has a gradient of norm C.

    Every validation batch that is not empty gives the copies' loss change without x, and one that x's loss can push to
    either end with x; the losses depend on w as the ascent asks.
    """
    records, batch, sigma = DPSUR[name]
    gate_rate, sigma_v, beta = 256 / records, 1.3, -1.0
    reaches = norm.cdf((beta + np.array([-1, 0, 1])) / (2 * sigma_v))
    setting = Setting(
        rate=batch / records, sigma=sigma, gate_rate=gate_rate, a_min=reaches[0], a_max=reaches[2]
    )
    empty = (1 - gate_rate) ** (records - 1)
    parts = [
        (
            share,
            IndependentGate(
                edges=gate.edges,
                rate=gate_rate,
                without=(1 - empty) * gate.without + empty * reaches[1],
                with_extra=gate.with_extra,
            ),
        )
        for share, gate in worst_hidden(setting, order, add=True)[1]
    ]
    train = silent_train(setting)
    law = mixed_law([(share, trial_law(train, gate, order)) for share, gate in parts])
    charged = sampled_gaussian(setting.rate, sigma, order) + sampled_gaussian(gate_rate, sigma_v, order)
    assert exact_hidden_rdp(law, order)[0] > 1.6 * charged


def test_a_strict_gate_can_cost_a_hundred_times_what_is_charged():
    """The same formula at beta = -3, sigma_v = 0.5: nothing in it depends on beta, though the gate does."""
    low, high = norm.cdf(-4.0), norm.cdf(-2.0)
    setting = Setting(rate=0.1, sigma=4.0, gate_rate=1e-3, a_min=low, a_max=high)
    charged = sampled_gaussian(0.1, 4.0, 2) + sampled_gaussian(1e-3, 0.5, 2)
    assert worst_hidden(setting, 2.0, add=True)[0] > 100 * charged


def test_two_records_are_enough_to_exceed_dpsurs_formula():
    """D = {z}, D' = {z, x}: x makes the batch look better where w shows that x was in it, z where it was not."""
    sigma_v, beta = 0.8, -3.0
    low, middle, high = norm.cdf((beta + np.array([-1, 0, 1])) / (2 * sigma_v))
    train = Train(gradients=(0.0,), extra=1.0, rate=0.3, sigma=2.0)
    gate = IndependentGate(
        edges=(0.5,),
        rate=0.05,
        without=np.array([[middle, middle], [high, low]]),  # validation batches: empty, {z}
        with_extra=np.array([[low, high], [low, high]]),  # {x}, {z, x}
    )
    charged = sampled_gaussian(0.3, 2.0, 2) + sampled_gaussian(0.05, sigma_v, 2)
    assert max(exact_hidden_rdp(trial_law(train, gate, 2.0), 2.0)) > 1.4 * charged


CIFAR = {"rate": 8192 / 50000, "sigma": 11.0}
METRIC = Metric(sigma_v=1.3, threshold=1.0)


def raised_rate(rate, ratio):
    """The worst-case effective probability q* that DPSR-CG puts in place of q."""
    return rate * ratio / (1 - rate + rate * ratio)


def told_apart(share, without, with_extra):
    """Batches of D of two kinds, which w tells apart: their other gradients point elsewhere."""
    return OrthogonalBatches(
        **CIFAR,
        log_probability=np.log([share, 1 - share]),
        centres=np.array([0.0, 40.0]),
        without=METRIC.accepts(np.array(without)),
        with_extra=METRIC.accepts(np.array(with_extra)),
    )


def test_the_raised_rate_of_dpsr_cg_is_exceeded_when_the_ratio_differs_between_batches():
    """x helps batches of one kind and harms those of the other, by the same factor r_hi that q* is made of."""
    low, high = METRIC.accepts(np.array([1.0, -1.0]))
    charged = sampled_gaussian(raised_rate(CIFAR["rate"], high / low), CIFAR["sigma"], 4)
    shares = np.linspace(0.3, 0.8, 26)
    leaked = max(max(told_apart(s, [1.0, -1.0], [-1.0, 1.0]).exact_hidden_rdp(4.0)) for s in shares)
    assert leaked == pytest.approx(12.7 * charged, rel=0.01)


def test_metrics_that_only_grow_exceed_the_plain_rate_of_dpsr_cg():
    """x never raises the acceptance (r <= 1, so q* = q), and still the mixture of batches leaks."""
    charged = sampled_gaussian(CIFAR["rate"], CIFAR["sigma"], 4)
    shares = np.linspace(0.3, 0.8, 26)
    # The kind that x harms starts at the best metric, the other one is at the worst already.
    leaked = max(max(told_apart(s, [-1.0, 1.0], [1.0, 1.0]).exact_hidden_rdp(4.0)) for s in shares)
    assert leaked == pytest.approx(4.9 * charged, rel=0.02)


def test_counting_the_batch_is_enough_to_tell_the_kinds_apart():
    """50,000 records whose gradients share a direction: the sum shows on which side of its mean the batch size is."""
    sizes = np.arange(7700, 8690)
    log_probability = binom.logpmf(sizes, 50_000, CIFAR["rate"])
    small = sizes <= 8192
    batches = OrthogonalBatches(
        **CIFAR,
        log_probability=log_probability,
        centres=(sizes - 8192) / CIFAR["sigma"],
        without=METRIC.accepts(np.where(small, 1.0, -1.0)),
        with_extra=METRIC.accepts(np.where(small, -1.0, 1.0)),
    )
    low, high = METRIC.accepts(np.array([1.0, -1.0]))
    charged = sampled_gaussian(raised_rate(CIFAR["rate"], high / low), CIFAR["sigma"], 4)
    assert max(batches.exact_hidden_rdp(4.0)) > 5 * charged


def test_a_buffered_candidate_with_its_score_costs_more_than_dpsgd_br_charges():
    """One of the two accepted candidates alone, at the published MNIST setting and 60,000 copies in D."""
    rate, sigma, gate_rate, sigma_v, beta = 1024 / 60000, 3.0, 256 / 60000, 1.37, -1.5
    gate = ScoredGate(
        edges=(-0.8, 0.1, 1.7),
        rate=gate_rate,
        sigma_v=sigma_v,
        beta=beta,
        without=np.array([[-1.0, 1.0, 1.0, -1.0]]),
        with_extra=np.array([[1.0, 1.0, -1.0, -1.0]]),
    )
    train = Train(gradients=(), extra=1.0, rate=rate, sigma=sigma)
    charged = sampled_gaussian(rate, sigma, 4) + sampled_gaussian(gate_rate, sigma_v, 4)
    assert max(exact_scored_rdp(train, gate, 4.0)) > 1.2 * charged

"""What a gate says about itself."""

import numpy as np
import pytest
from scipy.stats import norm

from discreet.accounting.selective import AnnealingGate, BatchGate, LossGate


def test_the_acceptance_of_a_loss_gate_is_that_of_its_two_extreme_metrics():
    gate = LossGate(sample_rate=0.01, noise_multiplier=1.3, threshold=-1.0)
    assert gate.a_max == pytest.approx(0.5)
    assert gate.a_min == pytest.approx(norm.cdf(-2.0 / 2.6))
    assert gate.kappa == pytest.approx(gate.a_max / gate.a_min)
    assert gate.acceptance().high_rejection == pytest.approx(1.0 - gate.a_min)


def test_rejections_keep_their_digits():
    gate = LossGate(sample_rate=0.01, noise_multiplier=0.1, threshold=2.0).acceptance()
    assert gate.high == 1.0
    assert 0.0 < gate.low_rejection < 1e-40


def test_the_annealing_gate_agrees_with_its_definition():
    gate = AnnealingGate(sample_rate=0.01, noise_multiplier=0.8, coldness=1.5)
    noise = np.random.default_rng(0).normal(0.0, 1.6, 400_000)
    for metric, expected in ((-1.0, gate.acceptance().high), (1.0, gate.acceptance().low)):
        simulated = np.exp(-1.5 * np.maximum(metric + noise, 0.0)).mean()
        assert simulated == pytest.approx(expected, abs=4e-3)


def test_an_annealing_gate_that_never_cools_accepts_everything():
    acceptance = AnnealingGate(sample_rate=0.01, noise_multiplier=0.8, coldness=0.0).acceptance()
    assert acceptance.low == pytest.approx(1.0)


@pytest.mark.parametrize("span", [1.0, 4.0])
def test_no_step_of_one_sensitivity_moves_a_batch_gate_by_more_than_it_says(span):
    gate = BatchGate(noise_multiplier=1.1, threshold=-0.5, span=span)
    metric = np.linspace(-span / 2.0, span / 2.0, 801)
    accepts = norm.cdf((gate.threshold * span / 2.0 - metric) / gate.noise_multiplier)
    steps = [
        accepts[j] / accepts[i]
        for i in range(0, 801, 5)
        for j in range(801)
        if abs(metric[j] - metric[i]) <= 1.0
    ]
    assert gate.low_ratio * (1 - 1e-9) <= min(steps)
    assert max(steps) <= gate.high_ratio * (1 + 1e-9)
    assert max(steps) == pytest.approx(gate.high_ratio, rel=1e-2)
    assert gate.low == pytest.approx(accepts.min())
    assert gate.high == pytest.approx(accepts.max())


def test_a_one_sided_batch_gate_is_never_raised_by_a_record():
    gate = BatchGate(noise_multiplier=1.1, threshold=-0.5, one_sided=True)
    assert gate.high_ratio == 1.0
    assert gate.low_ratio == BatchGate(noise_multiplier=1.1, threshold=-0.5).low_ratio


@pytest.mark.parametrize(
    ("gate", "settings", "field"),
    [
        (LossGate, {"sample_rate": 1.2, "noise_multiplier": 1.0, "threshold": 0.0}, "sample_rate"),
        (LossGate, {"sample_rate": 0.1, "noise_multiplier": 0.0, "threshold": 0.0}, "noise_multiplier"),
        (LossGate, {"sample_rate": 0.1, "noise_multiplier": 1.0, "threshold": float("nan")}, "threshold"),
        (AnnealingGate, {"sample_rate": 0.1, "noise_multiplier": 1.0, "coldness": -1.0}, "coldness"),
        (BatchGate, {"noise_multiplier": 1.0, "threshold": 0.0, "span": 0.5}, "span"),
        (BatchGate, {"noise_multiplier": -1.0, "threshold": 0.0}, "noise_multiplier"),
    ],
)
def test_a_bad_setting_is_refused_by_name(gate, settings, field):
    with pytest.raises(ValueError, match=field):
        gate(**settings)


def test_a_gate_that_never_accepts_is_refused():
    with pytest.raises(ValueError, match="never accepts"):
        LossGate(sample_rate=0.1, noise_multiplier=0.01, threshold=-9.0).acceptance()

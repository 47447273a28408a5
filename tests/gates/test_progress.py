from types import SimpleNamespace

import pytest
import torch
from scipy import stats

from discreet.accounting import PoissonGaussian
from discreet.gates.progress import NoisyAccuracy, PublicAccuracy, ReleasedScores
from discreet.gradients.private import Private
from discreet.noise.key import RunKey
from discreet.sampling import PoissonSampler


def sight(number=0, *, scores=(), gate=(-1.0, 2.0), public=0.0, hits=lambda indices: len(indices)):
    key = RunKey.from_seed(4)
    return SimpleNamespace(
        scores=scores,
        gate=gate,
        public_accuracy=lambda: public,
        correct=lambda indices: Private(hits(indices)),
        stream=lambda purpose: key.stream(purpose, number),
    )


def test_public_accuracy_counts_in_percentage_points_and_costs_nothing():
    progress = PublicAccuracy()
    assert progress.measure(sight(public=0.62), 0.5) == 0.62
    assert progress.progress(0.6, 0.625, sight()) == pytest.approx(2.5)
    assert progress.progress(None, 0.6, sight()) == 0.0
    assert progress.charge is None
    assert not progress.uses_scores


def noise_is_as_charged(progress) -> bool:
    """Nobody is right, so that only the noise is left; its deviation has to be the charged one."""
    found = [progress.measure(sight(number, hits=lambda _: 0), None) for number in range(400)]
    planned = progress.charge.noise_multiplier / progress.sampler.expected_batch_size
    total = float((torch.tensor(found, dtype=torch.float64) / planned).square().sum())
    return bool(stats.chi2(400).ppf(1e-4) < total < stats.chi2(400).ppf(1 - 1e-4))


NOISY = NoisyAccuracy(sampler=PoissonSampler(examples=50, rate=0.4), noise_multiplier=5.0)


def test_a_noisy_accuracy_gets_the_noise_that_it_is_charged_for():
    assert NOISY.charge == PoissonGaussian(sample_rate=0.4, noise_multiplier=5.0)
    assert noise_is_as_charged(NOISY)


def test_the_same_check_notices_noise_that_is_too_small(monkeypatch):
    charged = NOISY.charge
    quieter = NoisyAccuracy(sampler=NOISY.sampler, noise_multiplier=4.0)
    monkeypatch.setattr(NoisyAccuracy, "charge", property(lambda self: charged))
    assert not noise_is_as_charged(quieter)


def test_the_divisor_is_the_public_expected_size():
    found = [NOISY.measure(sight(number, hits=lambda _: 20), None) for number in range(400)]
    assert sum(found) / 400 == pytest.approx(1.0, abs=0.05)


def mean_progress(metric: float) -> float:
    """The progress of many accepted scores around a metric, once the smoothing has settled."""
    generator = torch.Generator().manual_seed(0)
    progress, before, told = ReleasedScores(), None, []
    for _ in range(3000):
        score = 9.0
        while score >= -1.0:
            score = metric + 2.0 * float(torch.randn((), generator=generator))
        before = progress.measure(sight(scores=[score]), before)
        told.append(progress.progress(None, before, sight()))
    return sum(told[100:]) / len(told[100:])


def test_scores_tell_how_good_the_accepted_candidates_were():
    assert mean_progress(1.0) == pytest.approx(0.0, abs=0.1)
    assert mean_progress(-1.0) == pytest.approx(1.0, abs=0.1)
    assert 0.2 < mean_progress(0.0) < 0.8


def test_scores_are_released_with_their_candidates_and_cost_nothing_more():
    assert ReleasedScores().uses_scores
    assert ReleasedScores().charge is None

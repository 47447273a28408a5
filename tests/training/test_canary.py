"""A canary in the gradients: what an adversary who sees every release can prove, next to what is certified.

The canary is a record with a feature of its own and a gradient far above the clip norm, so it moves the released sum by
exactly C in a known direction c. Seen along c, a release is N(1, sigma^2) in units of C with the canary and N(0,
sigma^2) without. Many releases give a confidence bound on the distance of the two; composed, it is a lower bound on
epsilon that a correct implementation cannot exceed (but with the bound's own probability) and should nearly reach.
"""

import math

import torch
from scipy import stats
from torch import nn

from discreet import start
from discreet.accounting import Budget, Gaussian, PoissonGaussian, epsilon
from discreet.data import Records
from discreet.recipes import DPSGD
from discreet.training import run as run_module

EXAMPLES, FEATURES, RELEASES = 20, 6, 3000
DELTA, CONFIDENCE = 1e-5, 0.999
CLIP_NORM, SIGMA = 0.7, 1.5


def projections(*, canary: bool) -> torch.Tensor:
    """Every released sum along the canary's direction, in units of the clip norm."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(EXAMPLES, FEATURES, generator=generator)
    inputs[:, -1] = 0.0
    if canary:
        inputs[0] = 0.0
        inputs[0, -1] = 1e4
    targets = torch.arange(EXAMPLES) % 2
    model = nn.Linear(FEATURES, 2, bias=False)
    nn.init.zeros_(model.weight)
    recipe = DPSGD(
        expected_batch_size=EXAMPLES,
        releases=RELEASES,
        noise_multiplier=SIGMA,
        clip_norm=CLIP_NORM,
        learning_rate=1e-12,
        momentum=0.0,
    )
    plan = recipe.plan(EXAMPLES, Budget(epsilon=1e5, delta=DELTA))
    run = start(model, Records.from_arrays(inputs, targets, classes=2), plan, seed=1 if canary else 2)
    direction = torch.zeros(2, FEATURES)
    # The gradient of the loss of label 0 at zero weights.
    direction[:, -1] = torch.tensor([-1.0, 1.0]) / math.sqrt(2)
    seen = []
    for _ in range(RELEASES):
        run.release()
        seen.append(run.state.gradient @ direction.flatten())
    return torch.stack(seen).double() * EXAMPLES / CLIP_NORM


def proven_epsilon(releases: int) -> float:
    """The epsilon of so many releases that the observed ones prove, with the confidence asked for."""
    with_canary, without = projections(canary=True), projections(canary=False)
    level = stats.norm.ppf(1 - (1 - CONFIDENCE) / 2)
    shift = float(with_canary.mean() - without.mean())
    deviation = math.sqrt(float(with_canary.var() + without.var()) / 2)
    shift_at_least = shift - level * deviation * math.sqrt(2 / RELEASES)
    freedom = 2 * RELEASES - 2
    deviation_at_most = deviation * math.sqrt(freedom / stats.chi2(freedom).ppf((1 - CONFIDENCE) / 2))
    return epsilon([(Gaussian(noise_multiplier=deviation_at_most / shift_at_least), releases)], DELTA)


CERTIFIED = epsilon([(PoissonGaussian(sample_rate=1.0, noise_multiplier=SIGMA), 3)], DELTA)


def test_what_a_canary_proves_is_below_the_certified_epsilon_and_close_to_it():
    assert 0.7 * CERTIFIED <= proven_epsilon(3) <= CERTIFIED


def test_noise_that_is_too_small_is_proven(monkeypatch):
    right = run_module.add_gaussian_
    monkeypatch.setattr(
        run_module, "add_gaussian_", lambda vector, stddev, stream: right(vector, 0.8 * stddev, stream)
    )
    assert proven_epsilon(3) > CERTIFIED


def test_a_clip_that_lets_too_much_through_is_proven(monkeypatch):
    from discreet.gradients import weighing

    right = weighing.round_up
    monkeypatch.setattr(weighing, "round_up", lambda squared, dtype: 0.8 * right(squared, dtype))
    assert proven_epsilon(3) > CERTIFIED

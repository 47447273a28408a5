import pytest
import torch
from torch import nn

from discreet import start
from discreet.accounting import Budget
from discreet.data import Records
from discreet.noise.gaussian import standard_normal

EXAMPLES = 80


class Lesson:
    """A run of a few releases, with the weights before and after each and the gradient that was released."""

    def __init__(self, recipe, releases: int = 4) -> None:
        generator = torch.Generator().manual_seed(0)
        inputs = torch.randn(EXAMPLES, 3, generator=generator, dtype=torch.float32)
        data = Records.from_arrays(inputs, torch.arange(EXAMPLES) % 2, classes=2)
        torch.manual_seed(0)
        self.plan = recipe.plan(EXAMPLES, Budget(epsilon=50.0, delta=1e-3))
        run = start(nn.Linear(3, 2), data, self.plan, seed=3)
        self.start = run.state.parameters.double().clone()
        self.gradients, self.weights = [], []
        for _ in range(releases):
            run.release()
            self.gradients.append(run.state.gradient.double().clone())
            self.weights.append(run.state.parameters.double().clone())


@pytest.fixture
def lesson():
    return Lesson


@pytest.fixture
def same():
    def compare(found, expected):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)

    return compare


class Trials:
    """A linear model that is trained for a number of trials, judged once more by hand from the run's own draws.

    Attributes:
        weights: before the first trial and after each, in float64.
        gradients: the noisy mean gradient of each trial.
        kept: whether the trial moved the weights.
        run: the run as it stands after the last one.
    """

    def __init__(self, recipe, number: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.inputs = torch.randn(EXAMPLES, 3, generator=generator)
        self.targets = (self.inputs.sum(dim=1) > 0).long()
        data = Records.from_arrays(self.inputs, self.targets, classes=2)
        plan = recipe.plan(EXAMPLES, Budget(epsilon=500.0, delta=1e-3))
        torch.manual_seed(0)
        self.run = start(nn.Linear(3, 2), data, plan, seed=3)
        self.weights, self.gradients, self.kept = [self._now()], [], []
        for _ in range(number):
            self.kept.append(self.run.release().updated)
            self.gradients.append(self.run.state.gradient.double().clone())
            self.weights.append(self._now())

    def _now(self):
        return self.run.state.parameters.double().clone()

    def losses(self, weights, indices):
        """The losses of these records under these weights, in float64."""
        matrix, bias = weights[:6].reshape(2, 3), weights[6:]
        outputs = self.inputs[indices].double() @ matrix.T + bias
        return nn.functional.cross_entropy(outputs, self.targets[indices], reduction="none")

    def gate_batch(self, trial: int, rate: float):
        """The validation batch of a trial: each record by its own bits."""
        words = self.run.key.stream("gate batch", trial).words(EXAMPLES) & (2**63 - 1)
        return torch.tensor([i for i in range(EXAMPLES) if int(words[i]) < int(rate * 2**63)])

    def gate_normal(self, trial: int) -> float:
        """The standard normal draw of a trial's test."""
        return float(standard_normal(self.run.key.stream("gate noise", trial), 1))

    def candidates(self, *, momentum: float = 0.6, learning_rate: float = 0.7):
        """The weights that each trial proposed, by heavy-ball momentum over what was kept before."""
        velocity, proposed = 0.0, []
        for trial, gradient in enumerate(self.gradients):
            moved = momentum * velocity + gradient
            proposed.append(self.weights[trial] - learning_rate * moved)
            if self.kept[trial]:
                velocity = moved
        return proposed

    @property
    def follow(self) -> bool:
        """Whether the weights moved to each kept candidate, and stayed where they were at each other."""
        ends = [
            candidate if kept else before
            for candidate, kept, before in zip(self.candidates(), self.kept, self.weights, strict=False)
        ]
        return all(
            torch.allclose(found, end, rtol=1e-5, atol=1e-6)
            for found, end in zip(self.weights[1:], ends, strict=True)
        )


@pytest.fixture
def trials():
    return Trials


@pytest.fixture
def small():
    """Settings of a small run with momentum."""
    return {
        "expected_batch_size": 20,
        "releases": 60,
        "noise_multiplier": 1.0,
        "clip_norm": 0.5,
        "learning_rate": 0.7,
        "momentum": 0.6,
    }

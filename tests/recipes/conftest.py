import pytest
import torch
from torch import nn

from discreet import start
from discreet.accounting import Budget
from discreet.data import Records

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

import pytest
import torch
from torch import nn

from discreet import start
from discreet.accounting import Budget
from discreet.data import Records
from discreet.gradients.layout import FlatLayout
from discreet.noise.gaussian import Released

EXAMPLES = 90
BUDGET = Budget(epsilon=1e4, delta=1e-4)


class Widen(nn.Module):
    """Records come in float32."""

    def forward(self, inputs):
        return inputs.double()


def network() -> nn.Module:
    """Three layers with parameters, two of them with a matrix, in float64."""
    torch.manual_seed(0)
    return nn.Sequential(Widen(), nn.Linear(4, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 3)).double()


class Stream:
    """Noisy releases that nobody made, and what a memory makes of them."""

    def __init__(self, memory, releases: int = 12) -> None:
        self.memory, self.model = memory, network()
        self.layout = FlatLayout.of(self.model)
        self.weights = Released(self.layout.flatten(self.model))
        generator = torch.Generator().manual_seed(3)
        drift = torch.randn(self.layout.size, generator=generator, dtype=torch.float64)
        self.fresh = [
            drift + torch.randn(self.layout.size, generator=generator, dtype=torch.float64)
            for _ in range(releases)
        ]

    def blends(self) -> list[torch.Tensor]:
        """The blends, one after the other; `told` keeps the figures."""
        self.recollection, self.told = self.memory.start(self.layout), []
        found = []
        for each in self.fresh:
            release = Released(each.clone())
            self.told.append(self.memory.blend_(release, self.recollection, weights=self.weights))
            found.append(release)
        return found


class Runs:
    """Whole runs on the same records with the same draws."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        inputs = torch.randn(EXAMPLES, 4, generator=generator)
        self.data = Records.from_arrays(inputs, torch.arange(EXAMPLES) % 3, classes=3)

    def start(self, recipe, **settings):
        """A run of a float64 network."""
        return start(
            network(), self.data, recipe.plan(EXAMPLES, BUDGET), seed=5, method="functional", **settings
        )

    def path(self, recipe) -> list[torch.Tensor]:
        """The weights after each release."""
        run = self.start(recipe)
        return [run.state.parameters.clone() for _ in run]


@pytest.fixture
def stream():
    return Stream


@pytest.fixture
def runs():
    torch.set_num_threads(1)
    return Runs()


@pytest.fixture
def same():
    def compare(found, expected, *, atol=1e-12):
        assert len(found) == len(expected) > 0
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=atol)

    return compare

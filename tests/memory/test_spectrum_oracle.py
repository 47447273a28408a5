"""The exponents next to those of the `powerlaw` package, on random and on trained matrices."""

import numpy as np
import powerlaw
import pytest
import torch
from torch import nn

from discreet.memory.spectrum import eigenvalues, power_law

pytestmark = pytest.mark.filterwarnings("ignore:Standard error:DeprecationWarning")  # of its own making


def theirs(values: torch.Tensor) -> tuple[float, float]:
    """Exponent and distance; without the package's own limit of 3 on exponents."""
    fit = powerlaw.Fit(values.numpy(), parameter_ranges={"alpha": [1.0, np.inf]}, verbose=0)
    return fit.alpha, fit.D


def agree(matrix: torch.Tensor) -> bool:
    values = eigenvalues(matrix)
    expected, _ = theirs(values)
    return power_law(values) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(10, 64), (32, 300), (64, 100), (128, 128), (300, 40)])
def test_on_gaussian_matrices(shape, seed):
    assert agree(torch.randn(shape, generator=torch.Generator().manual_seed(seed)))


@pytest.mark.parametrize("heaviness", [1.5, 3.0])
def test_on_heavy_tailed_matrices(heaviness):
    draws = np.random.default_rng(0).standard_t(heaviness, size=(80, 120))
    assert agree(torch.from_numpy(draws))


def test_on_values_that_repeat():
    values = torch.tensor([1.0, 1.0, 1.5, 1.5, 1.5, 2.0, 3.0, 3.0, 7.0, 9.0, 9.0, 20.0], dtype=torch.float64)
    assert power_law(values) == pytest.approx(theirs(values)[0], rel=1e-9)


@pytest.fixture(scope="module")
def trained() -> nn.Module:
    """A network after a few hundred steps towards labels that another network gives."""
    torch.manual_seed(0)
    teacher = nn.Sequential(nn.Linear(20, 5), nn.Tanh(), nn.Linear(5, 4))
    model = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    inputs = torch.randn(512, 20)
    with torch.no_grad():
        targets = teacher(inputs).argmax(1)
    for _ in range(300):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    return model


@pytest.mark.parametrize("layer", [0, 2])
def test_on_trained_matrices(trained, layer):
    weight = trained[layer].weight.detach()
    before = nn.Linear(weight.shape[1], weight.shape[0]).weight.detach()
    assert agree(weight)
    assert power_law(eigenvalues(weight)) != pytest.approx(power_law(eigenvalues(before)), rel=0.01)


def test_the_same_check_notices_a_fit_of_everything():
    """The planted fault: the smallest value as the start of the tail, whatever the distances say."""
    values = eigenvalues(torch.randn(64, 100, generator=torch.Generator().manual_seed(0)))
    of_everything = 1 + len(values) / float((values / values[0]).log().sum())
    expected, distance = theirs(values)
    assert of_everything != pytest.approx(expected, rel=0.1)
    assert 0 < distance < 0.5

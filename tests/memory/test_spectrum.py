import math

import numpy as np
import pytest
import torch

from discreet.memory.spectrum import eigenvalues, exponent, power_law


def sample(true: float, count: int, seed: int = 0) -> torch.Tensor:
    """Sorted draws from a power law above 1."""
    uniform = np.random.default_rng(seed).uniform(size=count)
    return torch.from_numpy(np.sort((1 - uniform) ** (-1 / (true - 1))))


@pytest.mark.parametrize("true", [1.8, 2.5, 4.0, 7.0])
def test_the_exponent_of_a_power_law_is_found(true):
    assert power_law(sample(true, 3000)) == pytest.approx(true, rel=0.08)


def test_a_body_that_follows_no_power_law_is_left_out():
    """Half of the values lie evenly below the tail: a fit of everything would be far off."""
    tail = 10 * sample(3.0, 1000)
    values = torch.cat([torch.linspace(0.01, 10.0, 1000, dtype=torch.float64), tail])
    assert power_law(values) == pytest.approx(3.0, rel=0.1)
    logs = (values / values[0]).log()
    of_everything = 1 + len(values) / float(logs.sum())
    assert abs(of_everything - 3.0) > 1.0


def test_the_exponent_does_not_know_the_unit():
    values = sample(2.7, 400)
    assert power_law(1e-9 * values) == pytest.approx(power_law(values), rel=1e-9)


@pytest.mark.parametrize("shape", [(7, 40), (40, 7), (12, 12), (3, 5)])
def test_eigenvalues_are_the_squared_singular_values_whichever_side_is_smaller(shape):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    expected = torch.linalg.svdvals(matrix.double()).square().flip(0)
    torch.testing.assert_close(eigenvalues(matrix), expected, rtol=1e-9, atol=1e-12)


def test_zeros_of_a_matrix_without_full_rank_are_no_eigenvalues():
    generator = torch.Generator().manual_seed(1)
    matrix = torch.randn(30, 4, generator=generator) @ torch.randn(4, 50, generator=generator)
    assert len(eigenvalues(matrix.double())) == 4


@pytest.mark.parametrize("matrix", [torch.zeros(4, 5), torch.eye(2), torch.ones(6, 8)])
def test_fewer_than_three_positive_eigenvalues_have_no_exponent(matrix):
    assert math.isnan(exponent(matrix))


def test_equal_eigenvalues_have_an_infinite_exponent():
    assert exponent(torch.eye(8)) == math.inf


def test_many_candidates_are_looked_at_in_pieces_with_the_same_result(monkeypatch):
    from discreet.memory import spectrum

    values = sample(2.2, 700)
    whole = power_law(values)
    monkeypatch.setattr(spectrum, "_ENTRIES_AT_ONCE", 5000)
    assert power_law(values) == whole


@pytest.mark.parametrize("entry", [math.inf, math.nan])
def test_a_matrix_that_is_not_finite_has_no_exponent(entry):
    matrix = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    matrix[2, 3] = entry
    assert math.isnan(exponent(matrix))
    assert math.isnan(exponent(torch.zeros(4, 4)))


@pytest.mark.parametrize("scale", [1e-180, 1e200])
def test_the_exponent_does_not_depend_on_the_scale_however_extreme(scale):
    matrix = torch.randn(30, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert exponent(scale * matrix) == pytest.approx(exponent(matrix), rel=1e-9)

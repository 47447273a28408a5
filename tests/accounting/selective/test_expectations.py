"""The expectations that all bounds are made of, against direct quadrature, and against damage."""

import numpy as np
import pytest

from discreet.accounting.selective import powers as powers_module
from discreet.accounting.selective.costs import smallest
from discreet.accounting.selective.curves import convex_curve
from discreet.accounting.selective.likelihood import LikelihoodRatio, ratio_grid
from discreet.accounting.selective.lines import expected_largest_line
from discreet.accounting.selective.powers import expected_maximum, power_table

LAWS = [
    LikelihoodRatio(0.03, 4.0),
    LikelihoodRatio(0.5, 1.0),
    LikelihoodRatio(1.0, 0.7),
    LikelihoodRatio(1e-4, 2.0),
]


def ratio_and_mass(law, power=1.0):
    y = np.linspace(-12.0 + min(power, 0.0) * law.mu, 13.0 + max(power, 1.0) * law.mu, 400_001)
    return np.exp(law.log_at(y)), np.exp(-(y**2) / 2.0) / np.sqrt(2.0 * np.pi) * (y[1] - y[0])


@pytest.mark.parametrize("law", LAWS)
def test_the_largest_line_is_bounded_from_above_and_closely(law):
    random = np.random.default_rng(1)
    intercepts, slopes = random.normal(size=(40, 5)), random.normal(size=(40, 5))
    intercepts[:20, 0] = slopes[:20, 0] = 0.0
    intercepts[:20] -= 1.5
    v, mass = ratio_and_mass(law)
    direct = [
        (np.max(a[:, None] + b[:, None] * v, axis=0) * mass).sum()
        for a, b in zip(intercepts, slopes, strict=True)
    ]
    bound = expected_largest_line(law, intercepts, slopes)
    assert np.all(bound >= np.array(direct) - 2e-9)
    np.testing.assert_allclose(bound, direct, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("power", [1.5, 3.0, 12.0, -0.5, -4.0])
def test_the_largest_power_function_is_bounded_from_above_and_closely(law, power):
    random = np.random.default_rng(2)
    rows = np.zeros(50, dtype=np.intp)
    table = power_table(law, np.array([power]))
    factor = random.uniform(0.2, 1.0, (50, 4))
    level = factor.max(axis=1, keepdims=True)
    # Differences that change sign where v has its mass, as in the bounds.
    constant = random.normal(0.0, 0.2, (50, 4)) - (1.0 - power) * factor / level
    slope = random.normal(0.0, 0.2, (50, 4)) - power * factor / level
    bound = expected_maximum(table, rows, factor, constant, slope).bound
    v, mass = ratio_and_mass(law, power)
    unit = np.exp(power * np.log(v) - table.log_scale[0])
    direct = np.array(
        [
            (np.max(f[:, None] * unit + a[:, None] + b[:, None] * v, axis=0) * mass).sum()
            for f, a, b in zip(factor, constant, slope, strict=True)
        ]
    )
    assert np.all(bound >= direct - 1e-9)
    # Beyond the grid, where far peaks lie, the largest factor is used throughout.
    np.testing.assert_allclose(bound, direct, atol=2e-5 if abs(power) * law.mu < 4.0 else 5e-4)


def test_a_law_without_the_spread_would_be_too_small(monkeypatch):
    """The twin: quadrature by the nodes' masses alone, without keeping the mean of v, falls below the truth."""
    law, power = LikelihoodRatio(0.5, 1.0), 3.0
    grid = ratio_grid(law)
    v, mass = ratio_and_mass(law)
    middles = np.append(0.0, grid.left + grid.right)  # all mass of a cell moved to its right end
    truth = (v ** (-power) * mass).sum()
    assert (grid.weights * grid.nodes ** (-power)).sum() >= truth
    assert (middles * grid.nodes ** (-power)).sum() < truth


def test_the_spread_keeps_mass_and_mean_and_raises_every_convex_function():
    for law in LAWS:
        grid = ratio_grid(law)
        assert (grid.weights.sum() + grid.tail_mass) == pytest.approx(1.0, abs=1e-13)
        assert (grid.weights @ grid.nodes + grid.tail_mean) == pytest.approx(1.0, abs=1e-13)
        v, mass = ratio_and_mass(law)
        for function in (np.square, np.abs, lambda x: np.maximum(x - 1.0, 0.0), np.exp):
            with np.errstate(over="ignore"):
                values = function(np.minimum(v, 50.0) - 1.0)
                at_nodes = function(np.minimum(grid.nodes, 50.0) - 1.0)
            if law.mu < 1.0:  # else the cut at 50, which is not convex, matters
                assert grid.weights @ at_nodes >= values @ mass - 1e-9


def test_what_is_not_a_number_never_lowers_a_bound():
    good, broken = np.array([1.0, 2.0, np.inf]), np.array([np.nan, 1.0, np.nan])
    np.testing.assert_array_equal(smallest(good, broken), [1.0, 1.0, np.inf])
    orders = np.array([2.0, 3.0, 4.0])
    assert np.all(convex_curve(orders, np.array([1.0, np.nan, 4.0])) >= [1.0, 1.2, 4.0 / 3.0 - 1e-12])
    assert np.isinf(convex_curve(orders, np.array([1.0, 2.0, np.nan]))[2])


def test_a_poisoned_table_makes_the_expectation_infinite():
    law = LikelihoodRatio(0.2, 1.0)
    table = power_table(law, np.array([2.0]))
    one = np.ones((1, 2))
    sound = expected_maximum(table, np.zeros(1, dtype=np.intp), one, one, -one).bound
    assert np.isfinite(sound).all()
    at_nodes = table.at_nodes.copy()
    at_nodes[0, 7] = np.nan
    poisoned = powers_module.PowerTable(
        table.grid, table.powers, table.log_scale, at_nodes, table.gaps, table.tail
    )
    with np.errstate(invalid="ignore"):
        assert np.isinf(expected_maximum(poisoned, np.zeros(1, dtype=np.intp), one, one, -one).bound).all()


def test_the_reweighted_mean_is_covered_from_both_sides():
    for law in LAWS:
        v, mass = ratio_and_mass(law)
        low, high = law.mean_range(3.0)
        for place in np.quantile(v, [0.2, 0.4, 0.5, 0.6, 0.8]):
            for weight in (np.where(v > place, 3.0, 1.0), np.where(v > place, 1.0, 3.0)):
                assert low - 1e-9 <= (weight * v * mass).sum() / (weight * mass).sum() <= high + 1e-9

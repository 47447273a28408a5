import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from discreet.gradients import (
    AutomaticClipping,
    FlatClipping,
    FlatLayout,
    GlobalClipping,
    LayerClipping,
    ScaledClipping,
)
from discreet.gradients.norms import round_up, squared_norms
from discreet.gradients.weighing import Weighing

RULES = [
    FlatClipping(clip_norm=0.7),
    AutomaticClipping(clip_norm=0.7),
    AutomaticClipping(clip_norm=0.7, stability=0.0),
    GlobalClipping(clip_norm=0.7, bound=3.0),
    ScaledClipping(clip_norm=0.7, bound=3.0),
    LayerClipping(clip_norm=0.7),
    LayerClipping(clip_norm=0.7, by="parameter"),
    LayerClipping(clip_norm=0.7, shares={"0": 1.0, "1": 3.0}),
]

LAYOUT = FlatLayout.of(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)))


@pytest.mark.parametrize("rule", RULES, ids=repr)
@given(exponents=st.lists(st.floats(-30, 30), min_size=4, max_size=4))
@settings(max_examples=50)
def test_no_gradient_contributes_more_than_the_sensitivity(rule, exponents) -> None:
    weighing = Weighing.of(rule, LAYOUT)
    squared = torch.tensor([[10.0**e for e in exponents[: weighing.group_count]]], dtype=torch.float64) ** 2
    _, weights = weighing.weigh(squared)
    assert float((weights * squared.sqrt()).norm()) <= rule.sensitivity


def test_the_same_check_fails_for_a_rule_that_forgets_the_number_of_groups() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Marginal(LayerClipping):
        def group_norms(self, count: int) -> list[float]:
            return [self.clip_norm] * count

    with pytest.raises(RuntimeError, match="break its own sensitivity"):
        Weighing.of(Marginal(clip_norm=1.0), LAYOUT).weigh(torch.full((1, 2), 9.0, dtype=torch.float64))


def test_small_gradients_pass_flat_clipping_unchanged() -> None:
    assert FlatClipping(clip_norm=1.0).weights(torch.tensor([[0.5], [2.0]])).tolist() == [[1.0], [0.5]]


def test_automatic_clipping_normalizes() -> None:
    weights = AutomaticClipping(clip_norm=2.0, stability=0.5).weights(torch.tensor([[0.5], [3.5]]))
    assert weights.tolist() == [[2.0], [0.5]]


def test_global_clipping_drops_what_exceeds_its_bound_and_scaled_clipping_clips_it() -> None:
    norms = torch.tensor([[1.0], [4.0]])
    assert GlobalClipping(clip_norm=1.0, bound=2.0).weights(norms).tolist() == [[0.5], [0.0]]
    assert ScaledClipping(clip_norm=1.0, bound=2.0).weights(norms).tolist() == [[0.5], [0.25]]
    assert int(ScaledClipping(clip_norm=1.0, bound=2.0).exceeding(norms)) == 1


def test_layers_share_the_joint_norm() -> None:
    rule = LayerClipping(clip_norm=1.0, shares={"0": 3.0, "1": 4.0})
    assert rule.groups(LAYOUT) == (0, 0, 1, 1)
    assert rule.group_norms(2) == pytest.approx([0.6, 0.8])
    assert LayerClipping(clip_norm=1.0, by="parameter").groups(LAYOUT) == (0, 1, 2, 3)


def test_shares_must_name_the_models_groups() -> None:
    with pytest.raises(ValueError, match="must name the groups"):
        LayerClipping(clip_norm=1.0, shares={"0": 1.0, "2": 1.0}).groups(LAYOUT)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_a_clip_norm_must_be_positive_and_finite(bad) -> None:
    with pytest.raises(ValueError, match="clip_norm"):
        FlatClipping(clip_norm=bad)


def test_gradients_that_are_not_finite_weigh_nothing() -> None:
    squared = torch.tensor([[1.0, 1.0], [math.nan, 1.0], [1.0, math.inf]], dtype=torch.float64)
    norms, weights = Weighing.of(LayerClipping(clip_norm=1.0), LAYOUT).weigh(squared)
    assert weights[1:].tolist() == [[0, 0], [0, 0]]
    assert norms[1:].isinf().all()
    assert weights[0].min() > 0


@given(
    entries=st.sampled_from([1, 127, 128, 129, 5000]),
    exponent=st.integers(-25, 12),
    spread=st.floats(0, 3),
)
@settings(max_examples=60)
def test_norms_are_never_too_small(entries, exponent, spread) -> None:
    generator = torch.Generator().manual_seed(entries)
    values = torch.randn(2, entries, generator=generator).mul(spread).exp() * 10.0**exponent
    true = values.double().square().sum(1).sqrt()
    found = round_up(squared_norms(values), values.dtype)
    assert (found >= true).all()
    assert (found <= true * (1 + 1e-5) + 1e-11).all()


def test_small_entries_beside_a_large_one_are_counted_where_single_precision_would_lose_them() -> None:
    values = torch.full((1, 1_000_000), 0.5)
    values[0, 0] = 4096
    true = float(values.double().square().sum())
    assert float(np.cumsum(values[0].square().numpy())[-1]) < 0.99 * true
    assert float(squared_norms(values)) == pytest.approx(true, rel=1e-6)


def test_gradients_whose_squares_overflow_count_as_not_finite() -> None:
    assert squared_norms(torch.full((1, 3), 1e30)).isinf().all()
    assert squared_norms(torch.full((1, 3), 1e30, dtype=torch.float64)).isfinite().all()

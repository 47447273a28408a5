import pytest
import torch
from torch import nn

from discreet.errors import UserError
from discreet.gradients import FlatLayout


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3, bias=False)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)


def test_tied_parameters_appear_once_and_frozen_ones_not_at_all() -> None:
    layout = FlatLayout.of(Tied())
    assert layout.names == ("first.weight", "second.bias")
    assert layout.size == 12


def test_bound_parameters_are_views_of_the_flat_vector() -> None:
    model = Tied()
    layout = FlatLayout.of(model)
    flat = layout.flatten(model)
    before = flat.clone()
    layout.bind(model, flat)
    assert torch.equal(layout.flatten(model), before)
    flat.zero_()
    assert float(model.second.weight.abs().sum()) == 0


def test_views_have_the_parameters_shapes_and_share_memory() -> None:
    layout = FlatLayout.of(nn.Linear(2, 3))
    flat = layout.zeros()
    layout.views(flat)["bias"].fill_(1)
    assert flat.tolist() == [0] * 6 + [1] * 3


def test_a_model_with_nothing_to_train_is_refused() -> None:
    with pytest.raises(UserError, match="no trainable parameters"):
        FlatLayout.of(nn.Linear(2, 2).requires_grad_(False))


def test_mixed_types_are_refused() -> None:
    with pytest.raises(UserError, match="one dtype"):
        FlatLayout.of(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double()))


def test_another_models_layout_is_refused() -> None:
    with pytest.raises(ValueError, match="not those of this layout"):
        FlatLayout.of(nn.Linear(2, 3)).flatten(nn.Linear(3, 3))

import pickle

import pytest
import torch

from discreet.gradients import Private


@pytest.mark.parametrize("look", [bool, int, float, len, list, pickle.dumps, torch.as_tensor])
def test_a_private_value_cannot_be_read_by_accident(look) -> None:
    with pytest.raises((TypeError, RuntimeError)):
        look(Private(torch.tensor(3.25)))


def test_a_private_value_does_not_show_in_text() -> None:
    hidden = Private(3.25)
    for text in (repr(hidden), str(hidden), f"{hidden}", f"{hidden:>20}", repr([hidden])):
        assert "3.25" not in text


def test_a_private_value_cannot_be_compared() -> None:
    with pytest.raises(TypeError):
        _ = Private(1) < 2
    with pytest.raises(TypeError):
        _ = Private(1) == 1


def test_a_mechanism_gets_the_value_by_name() -> None:
    assert Private(3).map(lambda value: value + 1).reveal_to_mechanism() == 4

import torch

from discreet.gradients import choosing
from discreet.gradients.choosing import Choices
from discreet.gradients.contributions import Rows


def ways(taken: list[str], *names: str):
    def way(name: str):
        def take() -> Rows:
            taken.append(name)
            return Rows(torch.zeros(3, 2))

        return take

    return {name: way(name) for name in names}


def chosen(monkeypatch, seconds: dict[str, float]) -> Choices:
    """What is chosen from ways that take so long."""
    choices = Choices()
    choices.timing = True
    monkeypatch.setattr(choosing, "_seconds", lambda *_: seconds)
    choices.take("layer", ways([], *seconds), (2,), torch.zeros(3, 2))
    choices.timing = False
    return choices


SECONDS = {"first": 4.0, "second": 2.0, "third": 3.0, "third, kept": 1.0}


def test_the_fastest_way_is_taken(monkeypatch) -> None:
    choices, taken = chosen(monkeypatch, SECONDS), []
    choices.take("layer", ways(taken, *SECONDS), (2,), torch.zeros(3, 2))
    assert taken == ["third, kept"]


def test_where_gradients_cannot_be_kept_the_fastest_of_the_other_ways_is_taken(monkeypatch) -> None:
    choices, taken = chosen(monkeypatch, SECONDS), []
    choices.take("layer", ways(taken, "first", "second", "third"), (2,), torch.zeros(3, 2))
    assert taken == ["second"]

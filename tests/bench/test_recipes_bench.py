import pytest

from discreet.bench.recipes import CONTENDERS, Setting, run, table
from discreet.errors import UserError

SMALL = Setting(model="mlp", shape=(8,), batch=16, gate_batch=8, classes=3)


def test_every_recipe_is_measured_beside_dp_sgd():
    costs = run([SMALL], rounds=2)
    assert [cost.recipe for cost in costs] == list(CONTENDERS)
    assert all(cost.milliseconds > 0 and cost.ratio > 0 for cost in costs)
    assert costs[0].ratio == costs[0].in_all == 1
    assert all(cost.in_all > 0 for cost in costs)
    assert table(costs).count("\n") == 1 + len(costs)


def test_dp_sgd_is_there_whatever_else_is_asked_for():
    assert [cost.recipe for cost in run([SMALL], ["dpsur"], rounds=1)] == ["dp-sgd", "dpsur"]


@pytest.mark.parametrize("wrong", [{"recipes": ["magic"]}, {"rounds": 0}])
def test_what_cannot_be_measured_is_refused(wrong):
    with pytest.raises(UserError):
        run([SMALL], **wrong)

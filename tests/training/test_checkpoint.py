import errno
import os

import pytest
import torch
from torch import nn

from discreet.errors import CorruptFile, UserError
from discreet.gradients.layout import FlatLayout
from discreet.optimizers import OptimizerChoice
from discreet.training import checkpoint
from discreet.training.state import TrainState

OPTIMIZERS = [
    OptimizerChoice(name="SGD"),
    OptimizerChoice(name="SGD", settings={"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    OptimizerChoice(name="Adam", settings={"betas": (0.9, 0.99), "amsgrad": True}),
    OptimizerChoice(name="AdamW"),
    OptimizerChoice(name="AdamBC"),
    OptimizerChoice(name="RMSprop", settings={"centered": True, "momentum": 0.5}),
    OptimizerChoice(name="Adagrad"),
    OptimizerChoice(name="NAdam"),
    OptimizerChoice(name="Rprop"),
    OptimizerChoice(name="ASGD"),
    OptimizerChoice(name="Adafactor"),
]


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


def fresh(choice):
    model = network()
    return TrainState.of(model, FlatLayout.of(model), choice, averaged=True), model


def advance(state, steps, start=0):
    for step in range(start, start + steps):
        state.gradient.copy_(torch.randn(state.gradient.shape, generator=torch.Generator().manual_seed(step)))
        state.step(learning_rate=0.1 / (1 + step), noise_variance=0.01, average=0.9)


@pytest.mark.parametrize("choice", OPTIMIZERS, ids=lambda choice: f"{choice.name}-{len(choice.settings)}")
class TestEveryOptimizer:
    def test_a_state_read_back_goes_on_as_if_nothing_had_happened(self, choice, tmp_path):
        state, _ = fresh(choice)
        advance(state, 3)
        checkpoint.save(tmp_path / "c", state, plan="p", facts={"a": [1, "b"]})
        advance(state, 4, start=3)
        other, model = fresh(choice)
        assert checkpoint.load(tmp_path / "c", other, plan="p") == {"a": [1, "b"]}
        assert other.releases == 3
        advance(other, 4, start=3)
        assert other.parameters.equal(state.parameters)
        assert other.average.equal(state.average)
        assert torch.cat([p.detach().flatten() for p in model.parameters()]).equal(state.parameters)

    def test_a_rejected_step_leaves_no_trace(self, choice):
        state, _ = fresh(choice)
        advance(state, 2)
        expected, _ = fresh(choice)
        advance(expected, 2)
        before = state.snapshot()
        advance(state, 1, start=100)
        state.restore(before)
        advance(state, 3, start=2)
        advance(expected, 3, start=2)
        assert state.parameters.equal(expected.parameters)
        assert state.average.equal(expected.average)

    def test_the_same_check_notices_an_optimizer_that_was_not_rolled_back(self, choice):
        """The planted fault: only the weights are put back. SGD without momentum remembers nothing."""
        state, _ = fresh(choice)
        advance(state, 2)
        expected, _ = fresh(choice)
        advance(expected, 2)
        before = state.snapshot()
        advance(state, 1, start=100)
        state.parameters.copy_(before["parameters"])
        advance(state, 3, start=2)
        advance(expected, 3, start=2)
        assert state.parameters.equal(expected.parameters) == (choice == OptimizerChoice(name="SGD"))


def test_the_model_moves_with_the_flat_vector_and_shares_its_memory():
    state, model = fresh(OPTIMIZERS[0])
    state.parameters.zero_()
    assert all(not parameter.any() for parameter in model.parameters())


@pytest.fixture
def saved(tmp_path):
    state, _ = fresh(OPTIMIZERS[2])
    advance(state, 2)
    checkpoint.save(tmp_path / "c", state, plan="p", facts={})
    return tmp_path / "c"


def test_a_checkpoint_holds_no_pickle_and_is_its_owners_alone(saved):
    content = saved.read_bytes()
    assert int.from_bytes(content[:8], "little") < len(content), (
        "safetensors: the length of a JSON header comes first"
    )
    assert content[8:9] == b"{"
    assert saved.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("place", [0, 9, 200, -1])
def test_a_damaged_checkpoint_is_refused(saved, place):
    content = bytearray(saved.read_bytes())
    content[place] ^= 0x10
    saved.write_bytes(bytes(content))
    with pytest.raises(CorruptFile, match=r"damaged|not a checkpoint"):
        checkpoint.load(saved, fresh(OPTIMIZERS[2])[0], plan="p")


def test_a_truncated_checkpoint_is_refused(saved):
    saved.write_bytes(saved.read_bytes()[:-40])
    with pytest.raises(CorruptFile, match="not a checkpoint"):
        checkpoint.load(saved, fresh(OPTIMIZERS[2])[0], plan="p")


def test_a_checkpoint_of_another_plan_is_refused(saved):
    with pytest.raises(UserError, match="another plan"):
        checkpoint.load(saved, fresh(OPTIMIZERS[2])[0], plan="q")


def test_a_missing_checkpoint_is_refused(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        checkpoint.load(tmp_path / "none", fresh(OPTIMIZERS[2])[0], plan="p")


def test_a_full_disk_leaves_the_old_checkpoint_whole(saved, monkeypatch):
    old = saved.read_bytes()

    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    state, _ = fresh(OPTIMIZERS[2])
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        checkpoint.save(saved, state, plan="p", facts={})
    assert saved.read_bytes() == old
    assert [path.name for path in saved.parent.iterdir()] == ["c"]


@pytest.mark.parametrize(
    ("choice", "complaint"),
    [
        (OptimizerChoice(name="LBFGS"), "calls the loss several times"),
        (OptimizerChoice(name="SparseAdam"), "dense"),
        (OptimizerChoice(name="Wonder"), "Wonder"),
        (OptimizerChoice(name="nn"), "nn"),
        (OptimizerChoice(name="SGD", settings={"momentum": -1}), "momentum"),
        (OptimizerChoice(name="SGD", settings={"speed": 1}), "speed"),
    ],
)
def test_an_optimizer_that_cannot_be_used_is_refused_by_name(choice, complaint):
    with pytest.raises(UserError, match=complaint):
        fresh(choice)

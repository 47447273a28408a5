"""What is remembered lies in a ring, and survives an interruption wherever the ring stands."""

import pytest
import torch
from torch import nn

from discreet import resume, start
from discreet.accounting import Budget
from discreet.gradients.layout import FlatLayout
from discreet.memory import FilteringMemory, Kernel, SpectralMemory
from discreet.memory.groups import whole
from discreet.memory.recollection import Recollection
from discreet.noise.gaussian import Released
from discreet.optimizers import OptimizerChoice
from discreet.recipes import FODPSGD, SMADPSGD, PostFMDPSGD
from discreet.training import checkpoint
from discreet.training.state import TrainState

SIZES = {"expected_batch_size": 30, "releases": 11, "noise_multiplier": 1.2, "fresh_weight": 0.6, "window": 4}
RECIPES = {
    "fo": FODPSGD(**SIZES),
    "post": PostFMDPSGD(**SIZES),
    "sma": SMADPSGD(**SIZES, spectrum_every=3, warm_up=2.0),
}


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))


def ring(lags: int, size: int = 3) -> Recollection:
    layout = FlatLayout.of(nn.Linear(size, 1, bias=False))
    return Recollection(past=torch.zeros(lags, size), branch=torch.zeros(size), groups=(whole(layout),))


def numbered(number: int) -> Released:
    return Released(torch.full((3,), float(number)))


def test_the_newest_is_at_lag_one_wherever_the_ring_stands():
    recollection = ring(3)
    for number in range(1, 12):
        recollection.remember(numbered(number))
        held = recollection.held
        assert held == min(number, 3)
        for lag in range(1, held + 1):
            only = [float(each == lag) for each in range(1, held + 1)]
            assert recollection.mix(only, slice(0, 3)).tolist() == [number + 1 - lag] * 3


def test_a_span_alone_is_mixed():
    recollection = ring(2)
    recollection.remember(Released(torch.tensor([1.0, 2.0, 3.0])))
    recollection.remember(Released(torch.tensor([10.0, 20.0, 30.0])))
    assert recollection.mix([0.5, 2.0], slice(1, 3)).tolist() == [14.0, 21.0]


def test_weights_for_releases_that_are_not_there_are_refused():
    recollection = ring(3)
    recollection.remember(numbered(1))
    with pytest.raises(ValueError, match="2 weights"):
        recollection.mix([0.5, 0.5], slice(0, 3))


def test_a_ring_without_rows_mixes_nothing_and_counts_all_the_same():
    recollection = ring(0)
    recollection.remember(numbered(1))
    assert recollection.mix([], slice(0, 3)).tolist() == [0.0] * 3
    assert recollection.remembered == 1


def test_no_release_makes_room_of_its_own(stream):
    """The ring, the trend and the branch stay where they are, and stay as large as they are."""
    for memory in (FilteringMemory(fresh_weight=0.5, window=4, kernel=Kernel()), RECIPES["sma"].memory()):
        seen = stream(memory, releases=2)
        seen.blends()
        kept = {**seen.recollection.tensors(), "branch": seen.recollection.branch}
        places = {name: tensor.data_ptr() for name, tensor in kept.items()}
        for each in seen.fresh:
            memory.blend_(Released(each), seen.recollection, weights=seen.weights)
        kept = {**seen.recollection.tensors(), "branch": seen.recollection.branch}
        assert {name: tensor.data_ptr() for name, tensor in kept.items()} == places
        assert kept["past"].shape == (3, seen.layout.size)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("made", range(1, 9))
def test_a_run_resumed_at_any_place_of_the_ring_ends_with_the_very_same_weights(runs, tmp_path, name, made):
    plan = RECIPES[name].plan(90, Budget(epsilon=1e4, delta=1e-4))
    whole = start(network(), runs.data, plan, seed=7)
    for _ in whole:
        pass
    run = start(network(), runs.data, plan, seed=7, folder=tmp_path / "run", checkpoint_seconds=3600)
    for release in run:
        if release.number == made:
            run.save()
            break
    run.let_go()
    again = resume(tmp_path / "run", network(), runs.data, plan)
    assert again.state.recollection.remembered == made
    for _ in again:
        pass
    assert again.state.parameters.equal(whole.state.parameters)
    found, expected = (each.state.recollection.tensors() for each in (again, whole))
    assert found.keys() == expected.keys()
    for each in expected:
        assert torch.allclose(found[each], expected[each], rtol=0, atol=0, equal_nan=True)
    again.let_go()


def state() -> TrainState:
    model = nn.Linear(5, 4)
    return TrainState.of(
        model,
        FlatLayout.of(model),
        OptimizerChoice(name="SGD"),
        averaged=False,
        memory=RECIPES["sma"].memory(),
    )


def advance(state: TrainState, memory: SpectralMemory, *, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    release = Released(torch.randn(state.parameters.shape, generator=generator))
    memory.blend_(release, state.recollection, weights=Released(state.parameters))
    return release


@pytest.mark.parametrize("forgotten", [None, "past", "trend", "remembered"])
def test_a_snapshot_takes_the_memory_back_and_what_it_forgot_would_be_noticed(forgotten):
    """The planted faults: one part of the memory is not taken back."""
    memory, torch_state = RECIPES["sma"].memory(), state()
    for seed in range(5):
        advance(torch_state, memory, seed=seed)
    before = torch_state.snapshot()
    expected = advance(torch_state, memory, seed=50)
    if forgotten is not None:
        remembered, tensors = before["recollection"]
        kept = torch_state.recollection.tensors()
        before["recollection"] = (
            torch_state.recollection.remembered if forgotten == "remembered" else remembered,
            {name: kept[name].clone() if name == forgotten else each for name, each in tensors.items()},
        )
    torch_state.restore(before)
    assert advance(torch_state, memory, seed=50).equal(expected) == (forgotten is None)


def test_a_checkpoint_holds_the_memory(tmp_path):
    memory, one, other = RECIPES["sma"].memory(), state(), state()
    for seed in range(5):
        advance(one, memory, seed=seed)
    checkpoint.save(tmp_path / "c", one, plan="p", facts={})
    checkpoint.load(tmp_path / "c", other, plan="p")
    assert advance(other, memory, seed=9).equal(advance(one, memory, seed=9))

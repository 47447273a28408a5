"""kill -9, at any moment, as often as one likes."""

import os
import random
import signal
import time

import pytest
import torch
from torch import nn

from discreet import conclude, resume, start
from discreet.accounting import Budget
from discreet.accounting.certification import verify_certificate
from discreet.accounting.log import read_log
from discreet.data import Records
from discreet.recipes import DPSGD, DPAdam
from discreet.schedules import Linear
from discreet.training import checkpoint

RELEASES = 150


@pytest.fixture(scope="module")
def data():
    generator = torch.Generator().manual_seed(0)
    targets = torch.arange(400) % 2
    inputs = torch.randn(400, 6, generator=generator) + 2.0 * targets[:, None]
    return Records.from_arrays(inputs, targets, classes=2)


def model():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))


def weights(network):
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])


def in_a_process_that_is_killed(work, after: float) -> bool:
    """Run `work` in a child and kill -9 the child after so many seconds; whether it had ended by then."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    time.sleep(after)
    ended, _ = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return bool(ended)


@pytest.mark.parametrize("kind", [DPSGD, DPAdam], ids=["dp-sgd", "dp-adam"])
def test_a_run_killed_at_random_moments_ends_with_the_same_weights_and_charges(data, tmp_path, kind):
    torch.set_num_threads(1)
    recipe = kind(expected_batch_size=40, releases=RELEASES, learning_rate=0.05)
    plan = recipe.plan(len(data), Budget(epsilon=4.0, delta=1e-4))
    whole = start(model(), data, plan, folder=tmp_path / "whole", seed=1)
    began = time.monotonic()
    for _ in whole:
        pass
    takes = time.monotonic() - began
    expected = weights(conclude(whole).model)

    folder = tmp_path / "killed"
    run = start(model(), data, plan, folder=folder, seed=1, checkpoint_seconds=0.005)
    run.log.close()
    del run

    def go_on():
        for _ in resume(folder, model(), data, plan, checkpoint_seconds=0.005):
            pass

    dice, kills = random.Random(0), 0
    while checkpoint.peek(folder / "private" / "checkpoint.safetensors")["releases"] < RELEASES:
        # A little more time after every kill: on a machine that is busy, taking up a run may take longer than it lives.
        after = dice.uniform(0.0, 0.6) * takes + 0.02 + 0.01 * kills
        if not in_a_process_that_is_killed(go_on, after):
            kills += 1
        saved = checkpoint.peek(folder / "private" / "checkpoint.safetensors")["releases"]
        assert saved <= read_log(folder).charged <= RELEASES, "a release is charged before it is made"
        assert kills < 200, "the run makes no headway"
    assert kills >= 3, "the run was hardly interrupted; the test shows nothing"

    result = conclude(resume(folder, model(), data, plan))
    assert weights(result.model).equal(expected)
    assert read_log(folder).charged == RELEASES
    assert verify_certificate(folder) == []


def test_a_torn_last_line_of_the_log_is_not_a_charge(data, tmp_path):
    # Every release has an event of its own, so that each is one line of the log.
    recipe = DPSGD(expected_batch_size=40, releases=6, noise_schedule=Linear(end=0.5))
    plan = recipe.plan(len(data), Budget(epsilon=4.0, delta=1e-4))
    run = start(model(), data, plan, folder=tmp_path / "run", seed=1, checkpoint_seconds=0)
    run.release()
    run.release()
    run.log.close()
    events = tmp_path / "run" / "events.jsonl"
    with events.open("ab") as file:
        file.write(events.read_bytes().splitlines()[-1][:40])
    assert read_log(tmp_path / "run").charged == 2
    again = resume(tmp_path / "run", model(), data, plan)
    for _ in again:
        pass
    conclude(again)
    assert read_log(tmp_path / "run").charged == 6

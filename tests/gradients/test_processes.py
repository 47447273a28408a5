"""Several processes: each sums its own records, the sums are added once."""

import os
from pathlib import Path

import pytest
import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
import torch.nn.functional as F
from torch import Tensor, nn

from discreet.gradients import FlatClipping, FlatLayout, GradientEngine

PROCESSES, RECORDS = 2, 11
RULE = FlatClipping(clip_norm=0.5)

pytestmark = pytest.mark.skipif(not distributed.is_gloo_available(), reason="torch was built without gloo")


def network() -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Conv2d(2, 4, 3), nn.Tanh(), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(64, 3)
    return nn.Sequential(*layers).double()


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(RECORDS, 2, 6, 6, generator=generator, dtype=torch.float64)
    return inputs, torch.randint(0, 3, (RECORDS,), generator=generator)


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(outputs, targets, reduction="none")


def clipped_sum(rows: slice) -> Tensor:
    """The sum of these records, by a process that sees no others."""
    model = network()
    layout = FlatLayout.of(model)
    out = layout.zeros()
    inputs, targets = batch()
    GradientEngine(model, losses, layout).clipped_sum(inputs[rows], targets[rows], RULE, out)
    return out


def share(rank: int, folder: str, cut: int, times: int) -> None:
    """One process: its own records' sum, added `times` times to the others'."""
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=PROCESSES
    )
    total = clipped_sum(slice(0, cut) if rank == 0 else slice(cut, RECORDS))
    for _ in range(times):
        distributed.all_reduce(total)
    torch.save(total, Path(folder) / f"{rank}.pt")
    distributed.destroy_process_group()


def shared_sums(folder: Path, cut: int, times: int = 1) -> list[Tensor]:
    multiprocessing.spawn(share, (str(folder), cut, times), nprocs=PROCESSES)
    return [torch.load(folder / f"{rank}.pt") for rank in range(PROCESSES)]


@pytest.mark.parametrize("cut", [5, RECORDS])
def test_the_sums_of_two_processes_add_up_to_that_of_one(tmp_path, cut) -> None:
    expected = clipped_sum(slice(None))
    for total in shared_sums(tmp_path, cut):
        torch.testing.assert_close(total, expected, rtol=1e-10, atol=1e-12)


def test_adding_them_twice_would_be_noticed(tmp_path) -> None:
    total = shared_sums(tmp_path, 5, times=2)[0]
    assert float((total - clipped_sum(slice(None))).norm()) > 0.1

import importlib.util
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from discreet.accounting import Budget
from discreet.data import Records

EXAMPLES = 300


def _rows():
    spec = importlib.util.spec_from_file_location("rows", Path(__file__).with_name("rows.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ROWS


ROWS = _rows()


def pytest_generate_tests(metafunc):
    if "recipe" in metafunc.fixturenames:
        metafunc.parametrize("recipe", ROWS.values(), ids=ROWS.keys())


class Workshop:
    """What the suite works with: three easy classes, a small network, a budget."""

    budget = Budget(epsilon=8.0, delta=1e-4)

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        targets = torch.arange(EXAMPLES) % 3
        centres = 2.5 * torch.eye(3, 4)
        inputs = centres[targets] + torch.randn(EXAMPLES, 4, generator=generator)
        self.data = Records.from_arrays(inputs, targets, classes=3, name="three clouds")

    def model(self) -> nn.Module:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 3))

    def plan(self, recipe, **changes):
        replaced = recipe.__replace__ if hasattr(recipe, "__replace__") else partial(replace, recipe)
        return replaced(**changes).plan(EXAMPLES, self.budget)


@pytest.fixture(scope="session")
def workshop():
    torch.set_num_threads(1)
    return Workshop()

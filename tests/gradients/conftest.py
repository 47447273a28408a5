"""Clipped sums by any method, ready to be compared."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from discreet.gradients import ClippingRule, FlatClipping, FlatLayout, GradientEngine


@dataclass(frozen=True)
class Outcome:
    """What an engine made of a batch."""

    total: Tensor
    norms: Tensor
    losses: Tensor
    not_finite: int
    engine: GradientEngine


def record_losses(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross entropy, one value per record."""
    return F.cross_entropy(outputs, targets, reduction="none")


def squared_outputs(outputs: Tensor, targets: Tensor) -> Tensor:
    """A loss for outputs of any shape, one value per record."""
    return (outputs.flatten(1) - targets.unsqueeze(1)).square().mean(1)


def run_engine(
    model: nn.Module,
    inputs: Any,
    targets: Any,
    *,
    rule: ClippingRule = FlatClipping(clip_norm=0.5),  # noqa: B008
    loss: Callable[[Any, Any], Tensor] = squared_outputs,
    **settings: Any,
) -> Outcome:
    """The clipped sum of one batch."""
    layout = FlatLayout.of(model)
    engine = GradientEngine(model, loss, layout, **settings)
    total = torch.full((layout.size,), float("nan"), dtype=layout.dtype)
    report = engine.clipped_sum(inputs, targets, rule, total)
    return Outcome(
        total=total,
        norms=report.norms.reveal_to_mechanism(),
        losses=report.losses.reveal_to_mechanism(),
        not_finite=report.not_finite.reveal_to_mechanism(),
        engine=engine,
    )


def assert_engines_agree(
    model: nn.Module,
    inputs: Any,
    targets: Any,
    *,
    methods: Sequence[str] = ("fused", "functional"),
    **settings: Any,
) -> None:
    """The engines give what one record at a time gives (torch.func has no recurrent layers)."""
    dtype = FlatLayout.of(model).dtype
    tolerance = 1e-10 if dtype == torch.float64 else 1e-5
    expected = run_engine(model, inputs, targets, method="loop", **settings)
    for method in methods:
        found = run_engine(model, inputs, targets, method=method, **settings)
        scale = max(1e-3, float(expected.total.norm()))
        assert float((found.total - expected.total).norm()) <= tolerance * scale, method
        torch.testing.assert_close(found.norms, expected.norms, rtol=tolerance, atol=tolerance * 1e-2)


@pytest.fixture
def run() -> Callable[..., Outcome]:
    return run_engine


@pytest.fixture
def agree() -> Callable[..., None]:
    return assert_engines_agree


@pytest.fixture
def cross_entropy() -> Callable[[Tensor, Tensor], Tensor]:
    return record_losses


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Tensors here are tiny: more threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)

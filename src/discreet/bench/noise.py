"""What the noise costs: one draw for a model against one whole release, side by side in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from discreet.gradients.clipping import FlatClipping
from discreet.gradients.engine import GradientEngine
from discreet.gradients.layout import FlatLayout
from discreet.models import build
from discreet.noise.gaussian import add_gaussian_
from discreet.noise.key import RunKey
from discreet.training.fit import cross_entropy

# Network, shape of a record, classes, batch size: the papers' settings.
_CASES = (
    ("cnn-mnist", (1, 28, 28), 10, 256),
    ("cnn-mnist", (1, 28, 28), 10, 2048),
    ("cnn-scatter", (81, 7, 7), 10, 2048),
    ("cnn-cifar", (3, 32, 32), 10, 256),
    ("resnet18-gn", (3, 32, 32), 10, 64),
)


@dataclass(frozen=True, kw_only=True)
class NoiseCost:
    """Median times, in milliseconds, for one model and batch size.

    Attributes:
        model: the network's name.
        batch: records in a batch.
        parameters: how many values are noised.
        gradients: the clipped sum.
        secure: the library's noise, from a keyed cipher in float64.
        torch_normal: torch's own generator in float32, for comparison; not fit for privacy.
    """

    model: str
    batch: int
    parameters: int
    gradients: float
    secure: float
    torch_normal: float

    @property
    def share(self) -> float:
        """The noise's share of a release."""
        return self.secure / (self.secure + self.gradients)


def run(turns: int = 7) -> list[NoiseCost]:
    """Measure every case, the peers interleaved."""
    return [_measure(*case, turns=turns) for case in _CASES]


def table(costs: list[NoiseCost]) -> str:
    """The measurements as a Markdown table."""
    lines = [
        "| model | batch | parameters | clipped sum, ms | noise, ms | torch normal_, ms | noise, share of a release |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {cost.model} | {cost.batch} | {cost.parameters:,} | {cost.gradients:.1f} | {cost.secure:.2f} | "
        f"{cost.torch_normal:.2f} | {cost.share:.1%} |"
        for cost in costs
    ]
    return "\n".join(lines)


def _measure(name: str, shape: tuple[int, ...], classes: int, batch: int, *, turns: int) -> NoiseCost:
    model = build(name, shape, classes)
    layout = FlatLayout.of(model)
    engine, rule, key = (
        GradientEngine(model, cross_entropy, layout),
        FlatClipping(clip_norm=1.0),
        RunKey.secret(),
    )
    inputs, targets = torch.randn(batch, *shape), torch.randint(classes, (batch,))
    gradient, plain = layout.zeros(), layout.zeros()
    peers: dict[str, Callable[[], object]] = {
        "gradients": lambda: engine.clipped_sum(inputs, targets, rule, gradient),
        "secure": lambda: add_gaussian_(gradient, 1.0, key.stream("noise", 0)),
        "torch_normal": lambda: gradient.add_(plain.normal_()),
    }
    times: dict[str, list[float]] = {peer: [] for peer in peers}
    for turn in range(turns + 1):
        for peer, work in peers.items():
            began = time.perf_counter()
            work()
            if turn:  # the first turn warms caches and lets the engine choose
                times[peer].append(1e3 * (time.perf_counter() - began))
    medians = {peer: statistics.median(found) for peer, found in times.items()}
    return NoiseCost(
        model=name,
        batch=batch,
        parameters=layout.size,
        gradients=medians["gradients"],
        secure=medians["secure"],
        torch_normal=medians["torch_normal"],
    )

"""What a release of each recipe costs, as a multiple of one of plain DP-SGD on the same batches."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from discreet.accounting import Budget
from discreet.data import Records
from discreet.errors import UserError
from discreet.models import build
from discreet.recipes import (
    DPSGD,
    DPSGDBR,
    DPSRCG,
    DPSUR,
    FODPSGD,
    SADPSGD,
    SMADPSGD,
    FirstOrder,
    PostFMDPSGD,
)
from discreet.training.fit import start

_PLAIN = "dp-sgd"
_WARM_UP = 2
_SAMPLE_RATE = 0.25
_RELEASES = 2000
"""In the plan; only the first few are made."""
_BUDGET = Budget(epsilon=1e6, delta=1e-6)
"""What is measured is time; no record is anybody's."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A network, what it reads, and the mean sizes of the training and the validation batches."""

    model: str
    shape: tuple[int, ...]
    batch: int
    gate_batch: int = 256
    classes: int = 10


SETTINGS = (
    Setting(model="cnn-mnist", shape=(1, 28, 28), batch=1024),
    Setting(model="cnn-mnist", shape=(1, 28, 28), batch=2048),
    Setting(model="cnn-scatter", shape=(81, 7, 7), batch=2048),
    Setting(model="cnn-cifar", shape=(3, 32, 32), batch=1024),
    Setting(model="resnet18-gn", shape=(3, 32, 32), batch=64, gate_batch=64),
)
"""The papers' networks at the papers' batches; that of CIFAR-10 at an eighth of its 8,192 records, and ResNet-18,
which SMA-DP-SGD was measured on, at a batch that is small: what a release costs beside its gradients weighs more.
"""

Contender = Callable[[Setting], FirstOrder]


def _plain(setting: Setting) -> FirstOrder:
    return DPSGD(expected_batch_size=setting.batch, releases=_RELEASES, noise_multiplier=4.0)


def _with_losses(recipe: type[DPSUR | DPSGDBR | SADPSGD]) -> Contender:
    def make(setting: Setting) -> FirstOrder:
        return recipe(
            expected_batch_size=setting.batch,
            releases=_RELEASES,
            noise_multiplier=4.0,
            gate_batch_size=setting.gate_batch,
        )

    return make


def _remembering(recipe: type[FODPSGD | PostFMDPSGD | SMADPSGD]) -> Contender:
    def make(setting: Setting) -> FirstOrder:
        return recipe(
            expected_batch_size=setting.batch, releases=_RELEASES, noise_multiplier=4.0, clipping="flat"
        )

    return make


def _with_bias(setting: Setting) -> FirstOrder:
    return DPSRCG(expected_batch_size=setting.batch, releases=_RELEASES, noise_multiplier=4.0)


CONTENDERS: dict[str, Contender] = {
    _PLAIN: _plain,
    "dpsur": _with_losses(DPSUR),
    "dpsgd-br": _with_losses(DPSGDBR),
    "dpsr-cg": _with_bias,
    "sa-dp-sgd": _with_losses(SADPSGD),
    "fo-dp-sgd": _remembering(FODPSGD),
    "post-fm-dp-sgd": _remembering(PostFMDPSGD),
    "sma-dp-sgd": _remembering(SMADPSGD),
}


@dataclass(frozen=True, kw_only=True)
class RecipeCost:
    """How long a release of one recipe takes; of a recipe with a gate that is a trial.

    Attributes:
        milliseconds: the median.
        ratio: the median of its time over that of DP-SGD's release on the same batch.
        in_all: the time of all its releases over that of all of DP-SGD's. What is done at some releases only, such as
            looking at a spectrum, is seen here and not in a median.
    """

    setting: Setting
    recipe: str
    milliseconds: float
    ratio: float
    in_all: float


def run(
    settings: Sequence[Setting] = SETTINGS, recipes: Sequence[str] | None = None, *, rounds: int = 15
) -> list[RecipeCost]:
    """Measure the recipes (by default all) at every setting, in turns."""
    chosen = list(dict.fromkeys((_PLAIN, *(CONTENDERS if recipes is None else recipes))))
    unknown = [name for name in chosen if name not in CONTENDERS]
    if unknown:
        raise UserError(f"recipes are {', '.join(unknown)}; they can be {', '.join(CONTENDERS)}")
    if not 1 <= rounds <= _RELEASES - _WARM_UP:
        raise UserError(f"rounds is {rounds}; it is between 1 and {_RELEASES - _WARM_UP}")
    return [cost for setting in settings for cost in _measure(setting, chosen, rounds)]


def table(costs: Sequence[RecipeCost]) -> str:
    """The measurements as a Markdown table."""
    lines = [
        "| model | batch | validation | recipe | release, ms | x DP-SGD | x in all |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {cost.setting.model} | {cost.setting.batch} | {cost.setting.gate_batch} | {cost.recipe} | "
        f"{cost.milliseconds:.1f} | {cost.ratio:.2f} | {cost.in_all:.2f} |"
        for cost in costs
    ]
    return "\n".join(lines)


def _measure(setting: Setting, recipes: Sequence[str], rounds: int) -> list[RecipeCost]:
    """Whole releases of runs in memory, charges included; one key, so the batches of all are the same."""
    records = round(setting.batch / _SAMPLE_RATE)
    torch.manual_seed(0)
    data = Records.from_arrays(
        torch.randn(records, *setting.shape),
        torch.randint(setting.classes, (records,)),
        classes=setting.classes,
        name="made up",
    )
    runs = {
        name: start(
            build(setting.model, setting.shape, setting.classes),
            data,
            CONTENDERS[name](setting).plan(records, _BUDGET),
            seed=0,
        )
        for name in recipes
    }
    seconds: dict[str, list[float]] = {name: [] for name in recipes}
    for number in range(rounds + _WARM_UP):
        turn = number % len(recipes)
        for name in [*recipes[turn:], *recipes[:turn]]:
            began = time.perf_counter()
            runs[name].release()
            seconds[name].append(time.perf_counter() - began)
    warm = {name: times[_WARM_UP:] for name, times in seconds.items()}
    return [
        RecipeCost(
            setting=setting,
            recipe=name,
            milliseconds=1e3 * statistics.median(times),
            ratio=statistics.median(one / other for one, other in zip(times, warm[_PLAIN], strict=True)),
            in_all=sum(times) / sum(warm[_PLAIN]),
        )
        for name, times in warm.items()
    ]

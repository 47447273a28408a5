"""How fast a private step is, as a multiple of a plain one: this package's engines beside other libraries.

All ways take their steps in turn in one process, so that whatever else the machine does falls on all alike,
and what is reported is the median of the ratios to the plain step of the same round. Before that, each way's
clipped sum of 8 records is compared with the one that takes one record at a time in float64.
"""

import copy
import json
import multiprocessing
import platform
import statistics
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from discreet.bench.speed_models import MODELS
from discreet.bench.speed_peers import WAYS, make
from discreet.bench.speed_stepper import CLIP_NORM, Stepper
from discreet.errors import UserError
from discreet.gradients import FlatClipping, FlatLayout, GradientEngine

_PLAIN = "plain"
_CHECKED = 8
_WARM_UP = 2


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One model at one batch size."""

    model: str
    batch: int

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise UserError(f"model must be one of {', '.join(MODELS)}, got {self.model!r}")
        if self.batch < 1:
            raise UserError(f"batch must be at least 1, got {self.batch}")

    @classmethod
    def parse(cls, text: str) -> "Setting":
        """A setting from text such as M1:256."""
        model, _, batch = text.partition(":")
        if not batch.isdigit():
            raise UserError(f"a setting is a model and a batch size, such as M1:256, got {text!r}")
        return cls(model=model, batch=int(batch))


DEFAULT_SETTINGS = tuple(
    Setting.parse(text)
    for text in (
        "M1:256",
        "M1:1024",
        "M1:2048",
        "M2:2048",
        "M3:256",
        "M4:256",
        "M4L:256",
        "M5:64",
        "M6:64",
    )
)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One way at one setting.

    Attributes:
        model: The model's name.
        batch: The batch size.
        way: The way's name.
        milliseconds: The median time of one step.
        ratio: The median of its time over that of the plain step of the same round.
        ratio_to_best: The same to the faster of the plain memory formats.
        cpu_to_best: The same in processor time of this process, which other processes disturb less.
        error: The relative distance of its clipped sum from the loop's; None for plain training.
        megabytes: The peak memory of its steps above what the process had before; None if not measured.
        failure: Why there is no measurement; empty if there is one.
    """

    model: str
    batch: int
    way: str
    milliseconds: float = float("nan")
    ratio: float = float("nan")
    ratio_to_best: float = float("nan")
    cpu_to_best: float = float("nan")
    error: float | None = None
    megabytes: float | None = None
    failure: str = ""


def run(
    settings: Sequence[Setting] = DEFAULT_SETTINGS,
    ways: Sequence[str] | None = None,
    *,
    rounds: int = 11,
    memory: bool = True,
) -> list[Measurement]:
    """Measure all ways, or these, at all settings; one whose package is not installed says so."""
    ways = list(ways or WAYS)
    unknown = [way for way in ways if way not in WAYS]
    if unknown:
        raise UserError(f"ways must be among {', '.join(WAYS)}, got {', '.join(unknown)}")
    if rounds < 1:
        raise UserError(f"rounds must be at least 1, got {rounds}")
    with warnings.catch_warnings():
        # Other libraries warn at every step; it is not about what is measured.
        warnings.simplefilter("ignore")
        return [found for setting in settings for found in _measure(setting, ways, rounds, memory)]


def table(measurements: Sequence[Measurement]) -> str:
    """The measurements as text."""
    ratios = f"{'x plain':>8} {'x best':>8} {'x cpu':>8}"
    lines = [f"{'model':5} {'batch':>5}  {'way':24} {'ms':>8} {ratios} {'error':>8} {'MB':>7}"]
    for found in measurements:
        error = "-" if found.error is None else f"{found.error:.0e}"
        megabytes = "-" if found.megabytes is None else f"{found.megabytes:.0f}"
        ratios = f"{found.ratio:8.2f} {found.ratio_to_best:8.2f} {found.cpu_to_best:8.2f}"
        numbers = f"{found.milliseconds:8.1f} {ratios} {error:>8} {megabytes:>7}"
        lines.append(f"{found.model:5} {found.batch:5d}  {found.way:24} {found.failure or numbers}")
    return "\n".join(lines)


def as_json(measurements: Sequence[Measurement]) -> str:
    """The measurements and the machine as JSON."""
    machine = {
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    return json.dumps(
        {"machine": machine, "measurements": [asdict(found) for found in measurements]}, indent=2
    )


def main(
    settings: Sequence[str] = (), *, rounds: int = 11, memory: bool = True, out: Path | None = None
) -> int:
    """Measure, print the table and, if asked, write the JSON."""
    chosen = [Setting.parse(text) for text in settings] or DEFAULT_SETTINGS
    measurements = []
    for setting in chosen:
        found = run([setting], rounds=rounds, memory=memory)
        print(table(found), flush=True)
        measurements += found
    if out is not None:
        out.write_text(as_json(measurements) + "\n")
    return 0


def _measure(setting: Setting, ways: Sequence[str], rounds: int, memory: bool) -> list[Measurement]:
    torch.manual_seed(0)
    model = MODELS[setting.model].build()
    inputs, targets = MODELS[setting.model].batch(setting.batch)
    expected = _one_by_one(model, inputs[:_CHECKED], targets[:_CHECKED])
    if MODELS[setting.model].vocabulary:
        ways = [way for way in ways if way != "plain, channels last"]
    steppers: dict[str, Stepper] = {}
    errors: dict[str, float | None] = {}
    failures: dict[str, str] = {}
    for way in dict.fromkeys((_PLAIN, *ways)):
        missing = WAYS[way].missing
        if missing is not None:
            failures[way] = f"skipped: {missing} is not installed"
            continue
        try:
            errors[way] = _error(make(way, model), inputs[:_CHECKED], targets[:_CHECKED], expected)
            steppers[way] = make(way, model)
            for _ in range(_WARM_UP):
                steppers[way].step(inputs, targets)
        # Whatever another library stumbles over is its result here, not ours to repair.
        except Exception as error:
            steppers.pop(way, None)
            failures[way] = f"fails: {type(error).__name__}: {' '.join(str(error).split())[:60]}"
    seconds, cpu = _interleaved(steppers, inputs, targets, rounds)
    best, best_cpu = _best_plain(seconds), _best_plain(cpu)
    return [
        Measurement(model=setting.model, batch=setting.batch, way=way, failure=failures[way])
        if way in failures
        else Measurement(
            model=setting.model,
            batch=setting.batch,
            way=way,
            milliseconds=1e3 * statistics.median(seconds[way]),
            ratio=_median_ratio(seconds[way], seconds[_PLAIN]),
            ratio_to_best=_median_ratio(seconds[way], best),
            cpu_to_best=_median_ratio(cpu[way], best_cpu),
            error=errors[way],
            megabytes=_peak_megabytes(way, setting) if memory else None,
        )
        for way in ways
    ]


def _interleaved(
    steppers: dict[str, Stepper], inputs: Tensor, targets: Tensor, rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """The seconds that each way took in each round, on the wall's clock and of processor time."""
    seconds: dict[str, list[float]] = {way: [] for way in steppers}
    cpu: dict[str, list[float]] = {way: [] for way in steppers}
    for number in range(rounds):
        # Another order each round: no way always follows the one that leaves the caches in the worst state.
        order = list(steppers)
        for way in order[number % len(order) :] + order[: number % len(order)]:
            start, start_cpu = time.perf_counter(), time.process_time()
            steppers[way].step(inputs, targets)
            seconds[way].append(time.perf_counter() - start)
            cpu[way].append(time.process_time() - start_cpu)
    return seconds, cpu


def _best_plain(seconds: dict[str, list[float]]) -> list[float]:
    """The time of the faster of the plain memory formats in each round."""
    plain = (times for way, times in seconds.items() if way.startswith(_PLAIN))
    return [min(times) for times in zip(*plain, strict=True)]


def _median_ratio(times: Sequence[float], others: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(times, others, strict=True))


def _one_by_one(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    """The clipped sum by one record at a time in float64."""

    def losses(outputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(outputs, targets, reduction="none")

    model = copy.deepcopy(model).double()
    layout = FlatLayout.of(model)
    engine, out = GradientEngine(model, losses, layout, method="loop"), layout.zeros()
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    engine.clipped_sum(inputs, targets, FlatClipping(clip_norm=CLIP_NORM), out)
    return out


def _error(stepper: Stepper, inputs: Tensor, targets: Tensor, expected: Tensor) -> float | None:
    found = stepper.clipped_sum(inputs, targets)
    if found is None:
        return None
    return float((found.double() - expected).norm() / expected.norm())


def _peak_megabytes(way: str, setting: Setting) -> float | None:
    """The peak of a fresh process while it takes such steps, above what it had before; Linux only."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_steps_alone, (way, setting, torch.get_num_threads()))


def _steps_alone(way: str, setting: Setting, threads: int) -> float:
    torch.set_num_threads(threads)
    model = MODELS[setting.model].build()
    inputs, targets = MODELS[setting.model].batch(setting.batch)
    small = MODELS[setting.model].batch(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Imports and first-time set-up are not the step's.
        make(way, model).step(*small)
        stepper = make(way, model)
        before = _kilobytes("VmRSS")
        stepper.step(inputs, targets)
        Path("/proc/self/clear_refs").write_text("5")
        for _ in range(3):
            stepper.step(inputs, targets)
    return (_kilobytes("VmHWM") - before) / 1024


def _kilobytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()

"""The compiled kernels against torch and against the engine without them, and everything that can go wrong first."""

import os
import shutil
import stat
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from discreet.errors import UserError
from discreet.gradients import FlatClipping
from discreet.gradients.native import Kernels, building, checking, kernels, loading
from discreet.gradients.norms import round_up

no_compiler = shutil.which("c++") is None and shutil.which("g++") is None
pytestmark = pytest.mark.skipif(no_compiler, reason="there is no C++ compiler")

several = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
dtypes = st.sampled_from([torch.float32, torch.float64])
booleans = st.booleans()


@pytest.fixture(scope="module")
def compiled() -> Kernels:
    found = kernels()
    assert found is not None
    return found


def close(found: Tensor, expected: Tensor) -> None:
    tolerance = TOLERANCE[expected.dtype]
    scale = max(1e-3, float(expected.norm()))
    assert float((found - expected).norm()) <= tolerance * scale


def one_by_one(inputs: Tensor, gradients: Tensor, kernel: Tensor, **geometry) -> Tensor:
    """Each record's gradient of a kernel, by autograd."""
    convolution = (F.conv1d, F.conv2d, F.conv3d)[inputs.dim() - 3]
    kernel = kernel.requires_grad_()
    return torch.stack(
        [
            torch.autograd.grad(convolution(one[None], kernel, **geometry), kernel, above[None])[0]
            for one, above in zip(inputs, gradients, strict=True)
        ]
    )


@several
@given(
    size=st.sampled_from([1, 2, 5]),
    dims=st.integers(1, 3),
    channels=st.sampled_from([1, 2, 3, 8, 16, 21]),
    outputs=st.sampled_from([1, 2, 5, 8, 13]),
    groups=st.sampled_from([1, 2, 3]),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 2),
    padding=st.integers(0, 2),
    dilation=st.integers(1, 2),
    last=booleans,
    dtype=dtypes,
)
def test_windows_are_those_of_autograd(
    compiled, size, dims, channels, outputs, groups, kernel, stride, padding, dilation, last, dtype
) -> None:
    space = (7, 6, 5)[:dims]
    inputs = torch.randn(size, channels * groups, *space, dtype=dtype)
    weight = torch.zeros(outputs * groups, channels, *(kernel,) * dims, dtype=dtype)
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    shape = (F.conv1d, F.conv2d, F.conv3d)[dims - 1](inputs, weight, **geometry).shape
    gradients = torch.randn(shape, dtype=dtype)
    expected = one_by_one(inputs, gradients, weight, **geometry)
    if last:
        inputs, gradients = (
            tensor.movedim(1, -1).contiguous().movedim(-1, 1) for tensor in (inputs, gradients)
        )
    rows = inputs.new_full((size, outputs * groups, *(kernel,) * dims, channels), float("nan"))
    each = [(value,) * dims for value in (kernel, stride, padding, dilation)]
    squared = compiled.windows(inputs, gradients, *each, groups=groups, out=rows)
    close(rows.movedim(-1, 2), expected)
    close(squared.to(dtype), expected.double().square().flatten(1).sum(1).to(dtype))
    assert squared.equal(compiled.windows(inputs, gradients, *each, groups=groups))


@several
@given(
    size=st.integers(1, 4), steps=st.integers(1, 9), m=st.integers(1, 20), n=st.integers(1, 60), dtype=dtypes
)
def test_products_of_any_strides(compiled, size, steps, m, n, dtype) -> None:
    left, right = torch.randn(size, steps, m, dtype=dtype), torch.randn(size, steps, n, dtype=dtype)
    expected = left.transpose(1, 2) @ right
    wide = torch.randn(steps, size, n + 3, dtype=dtype)
    wide[..., 2 : n + 2] = right.transpose(0, 1)
    for one, other in (
        (left, right),
        (left.transpose(0, 1).contiguous().transpose(0, 1), wide[..., 2 : n + 2].transpose(0, 1)),
        (
            left.transpose(1, 2).contiguous().transpose(1, 2),
            right.transpose(1, 2).contiguous().transpose(1, 2),
        ),
    ):
        rows = torch.full((size, m, n), float("nan"), dtype=dtype)
        squared = compiled.products(one, other, out=rows)
        close(rows, expected)
        close(squared.to(dtype), expected.square().flatten(1).sum(1))


@several
@given(
    size=st.sampled_from([1, 2, 7, 8, 9, 17]),
    steps=st.integers(1, 5),
    units=st.sampled_from([1, 3, 8, 16, 33, 50]),
    layers=st.integers(1, 2),
    both=booleans,
    bias=booleans,
    batch_first=booleans,
    dtype=dtypes,
)
def test_an_lstm_is_that_of_one_record_at_a_time(
    agree, run, size, steps, units, layers, both, bias, batch_first, dtype
) -> None:
    model = _LSTM(units, layers, both, bias, batch_first).to(dtype)
    inputs, targets = torch.randn(size, steps, 3, dtype=dtype), torch.randn(size, dtype=dtype)
    agree(model, inputs, targets, methods=["fused"])
    assert run(model, inputs, targets, method="fused").engine.choices["ways"]["lstm"] == "compiled"


class _LSTM(nn.Module):
    """An LSTM between layers, whose first states are computed and whose last ones are used."""

    def __init__(self, units: int, layers: int, both: bool, bias: bool, batch_first: bool) -> None:
        super().__init__()
        self.count = layers * (2 if both else 1)
        self.batch_first = batch_first
        self.start = nn.Linear(3, units)
        self.layer = nn.LSTM(
            3, units, num_layers=layers, bidirectional=both, bias=bias, batch_first=batch_first
        )

    def forward(self, inputs: Tensor) -> Tensor:
        start = self.start(inputs[:, 0]).expand(self.count, -1, -1)
        inputs = inputs if self.batch_first else inputs.transpose(0, 1)
        output, (state, memory) = self.layer(inputs, (start, start.sin()))
        output = output if self.batch_first else output.transpose(0, 1)
        return output + (state * memory).sum((0, 2)).view(-1, 1, 1)


MODELS = {
    "convolutions": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 20, 3, padding=1), nn.Tanh(), nn.Conv2d(20, 12, 3, stride=2, groups=2), nn.Flatten()
        ),
        (3, 9, 9),
    ),
    "transposed": (
        lambda: nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)),
        (4, 5, 5),
    ),
    "lstm": (lambda: _LSTM(20, 2, True, True, True), (6, 3)),
    "sequence": (lambda: nn.Sequential(nn.Linear(6, 18), nn.Tanh(), nn.Linear(18, 4)), (7, 6)),
}


def forced(run, model: nn.Module, inputs: Tensor, targets: Tensor, way: str | None, **settings):
    """The engine with the compiled kernels wherever they can be used, kept or not, or with none."""
    tried = run(model, inputs, targets, method="fused", **settings).engine.choices
    if way is None:
        ways = {name: chosen for name, chosen in tried["ways"].items() if not chosen.startswith("compiled")}
    else:
        layers = ("convolution", "sequence")
        ways = {name: way if name.startswith(layers) else chosen for name, chosen in tried["ways"].items()}
    choices = {**tried, "ways": ways, "kernels": "none" if way is None else kernels().key}
    return run(model, inputs, targets, method="fused", choices=choices, **settings)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("way", ["compiled", "compiled, kept"])
@pytest.mark.parametrize("name", MODELS)
def test_the_engine_gives_the_same_with_kernels_and_without(run, name, way, dtype) -> None:
    build, shape = MODELS[name]
    model = build().to(dtype)
    inputs, targets = torch.randn(6, *shape, dtype=dtype), torch.randn(6, dtype=dtype)
    found, plain = (forced(run, model, inputs, targets, kind) for kind in (way, None))
    assert found.engine.choices["kernels"] != "none"
    assert plain.engine.choices["kernels"] == "none"
    assert not any(chosen.startswith("compiled") for chosen in plain.engine.choices["ways"].values())
    close(found.total, plain.total)
    close(found.norms.to(dtype), plain.norms.to(dtype))


def share_of(run, name: str, changed: bool, way: str) -> list[Tensor]:
    """The clipped sums of six records, and of all but the third, which may be another one."""
    build, shape = MODELS[name]
    torch.manual_seed(1)
    model = build()
    inputs, targets = torch.randn(6, *shape), torch.randn(6) * 50
    if changed:
        inputs[2] = torch.randn(shape) * 30
    others = torch.tensor([0, 1, 3, 4, 5])
    return [
        forced(run, model, inputs[rows], targets[rows], way, rule=FlatClipping(clip_norm=0.1)).total
        for rows in (torch.arange(6), others)
    ]


@pytest.mark.parametrize("way", ["compiled", "compiled, kept"])
@pytest.mark.parametrize("name", MODELS)
def test_another_record_changes_its_own_share_only_and_that_by_at_most_the_clip_norm(run, name, way) -> None:
    before, after = (share_of(run, name, changed, way) for changed in (False, True))
    torch.testing.assert_close(before[1], after[1], rtol=1e-6, atol=1e-7)
    for whole, rest in (before, after):
        assert float((whole - rest).double().norm()) <= 0.1 * (1 + 1e-5)


def test_the_same_check_fails_for_norms_that_are_too_small(run, monkeypatch) -> None:
    right = Kernels.windows
    monkeypatch.setattr(Kernels, "windows", lambda *args, **kwargs: right(*args, **kwargs) / 4)
    whole, rest = share_of(run, "convolutions", False, "compiled")
    assert float((whole - rest).norm()) > 0.1 * (1 + 1e-5)


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1.0, 1e12])
def test_norms_are_never_too_small(compiled, scale) -> None:
    inputs, gradients = torch.randn(4, 16, 30, 30) * scale, torch.randn(4, 8, 28, 28)
    rows = torch.empty(4, 8, 3, 3, 16)
    squared = compiled.windows(inputs, gradients, (3, 3), (1, 1), (0, 0), (1, 1), out=rows)
    true = rows.double().flatten(1).norm(dim=1)
    bound = round_up(squared, torch.float32)
    assert bool((bound >= true).all())
    assert bool((bound <= true * (1 + 1e-5) + 1e-11).all())


def test_what_is_not_finite_is_told_in_the_norm_of_its_record_alone(compiled) -> None:
    inputs, gradients = torch.randn(5, 3, 8, 8), torch.randn(5, 4, 6, 6)
    inputs[1, 0, 4, 4], gradients[3, 2, 1, 1] = float("nan"), float("inf")
    inputs[4] *= 1e30
    squared = compiled.windows(inputs, gradients, (3, 3), (1, 1), (0, 0), (1, 1))
    assert squared.isfinite().tolist() == [True, False, True, False, False]


def test_what_is_not_finite_stays_with_its_record_in_an_lstm(run) -> None:
    model = _LSTM(20, 1, True, True, True)
    inputs, targets = torch.randn(6, 4, 3), torch.randn(6)
    inputs[2, 1, 0] = float("nan")
    sound = torch.tensor([0, 1, 3, 4, 5])
    found, expected = (run(model, inputs[r], targets[r], method="fused") for r in (torch.arange(6), sound))
    assert found.not_finite == 1
    close(found.total, expected.total)


def test_gates_far_from_zero_are_those_of_torch(compiled) -> None:
    for dtype in TOLERANCE:
        values = torch.tensor([0.0, 1e-30, 1e-5, 0.3, 1, 9, 40, 100, 800, float("inf")], dtype=dtype)
        values = torch.cat([values, -values])
        gates = values.repeat_interleave(4).view(-1, 1, 4)
        zeros = torch.zeros(1, len(values), 1, dtype=dtype)
        forward = compiled.lstm_forward(
            gates, torch.zeros(1, 4, 1, dtype=dtype), zeros[:, 0].expand(1, 4), zeros, zeros
        )
        memory = values.sigmoid() * values.tanh()
        close(forward.memory.flatten(), memory)
        close(forward.state.flatten(), values.sigmoid() * memory.tanh())
        tiny = values.abs() < 1e-4
        torch.testing.assert_close(forward.memory.flatten()[tiny], memory[tiny], rtol=1e-6, atol=0)


def test_results_do_not_depend_on_the_number_of_threads(run) -> None:
    totals = []
    for name, threads in (("convolutions", 1), ("convolutions", 3), ("lstm", 1), ("lstm", 3)):
        build, shape = MODELS[name]
        torch.manual_seed(0)
        model, inputs = build(), torch.randn(21, *shape)
        compiled = kernels()
        torch.set_num_threads(threads)
        try:
            if name == "lstm":
                gates, state = torch.randn(21, 6, 160), torch.randn(2, 21, 20)
                weight = torch.randn(2, 80, 20)
                forward = compiled.lstm_forward(gates, weight, torch.randn(2, 80), state, state)
                back = compiled.lstm_backward(
                    forward, forward.output, state, state, weight, torch.empty_like(gates)
                )
                totals.append((forward.output, back.gates, back.state, back.memory))
            else:
                rows = torch.empty(21, 20, 3, 3, 3)
                above = torch.randn(21, 20, 9, 9)
                each = ((3, 3), (1, 1), (1, 1), (1, 1))
                totals.append((compiled.windows(inputs, above, *each, out=rows), rows))
        finally:
            torch.set_num_threads(1)
        assert prod(model(inputs[:1]).shape)
    for one, other in (totals[:2], totals[2:]):
        assert all(a.equal(b) for a, b in zip(one, other, strict=True))


class TestHavingKernels:
    @pytest.fixture(autouse=True)
    def _afresh(self, monkeypatch):
        """As in a process that has not asked yet, and again for the tests that come after."""
        monkeypatch.delenv(loading.VARIABLE, raising=False)
        loading._loaded.cache_clear()
        yield
        loading._loaded.cache_clear()

    @pytest.fixture
    def cache(self, tmp_path, monkeypatch) -> Path:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        return tmp_path / "discreet" / "kernels"

    def test_they_are_switched_off_by_the_variable(self, monkeypatch):
        monkeypatch.setenv(loading.VARIABLE, "off")
        assert kernels() is None

    def test_other_values_are_refused(self, monkeypatch):
        monkeypatch.setenv(loading.VARIABLE, "maybe")
        with pytest.raises(UserError, match="must be on or off, got 'maybe'"):
            kernels()

    def test_nothing_is_built_at_import(self, cache):
        subprocess.run(
            [sys.executable, "-c", "import discreet, discreet.gradients"], check=True, env={**os.environ}
        )
        assert not cache.exists()

    @pytest.mark.parametrize(
        ("compiler", "reason"),
        [("false", "false fails"), ("", "no C\\+\\+ compiler")],
    )
    def test_without_a_compiler_that_works_it_is_told_once_and_goes_on(
        self, run, cache, monkeypatch, compiler, reason
    ):
        monkeypatch.setenv("CXX", compiler)
        if not compiler:
            monkeypatch.setattr(building.shutil, "which", lambda word: None)
        model, inputs, targets = nn.Linear(6, 4), torch.randn(3, 5, 6), torch.randn(3)
        with pytest.warns(UserWarning, match=reason):
            first = run(model, inputs, targets, method="fused")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run(model, inputs, targets, method="fused")
        assert first.engine.choices["kernels"] == "none"

    def test_a_compiler_that_miscompiles_is_found_out(self, monkeypatch):
        right = Kernels.windows
        monkeypatch.setattr(Kernels, "windows", lambda *args, **kwargs: right(*args, **kwargs) * 1.001)
        with pytest.warns(UserWarning, match="are off by"):
            assert kernels() is None

    def test_so_is_an_lstm_that_is_wrong(self, compiled, monkeypatch):
        right = Kernels.lstm_backward

        def wrong(*args):
            found = right(*args)
            found.memory.mul_(1.001)
            return found

        monkeypatch.setattr(Kernels, "lstm_backward", wrong)
        with pytest.raises(checking.WrongResult):
            checking.check(compiled)

    def test_several_at_once_build_one_library(self, cache):
        with ThreadPoolExecutor(3) as pool:
            paths = set(pool.map(lambda _: building.built(cache), range(3)))
        assert len(paths) == 1
        assert sorted(path.suffix for path in cache.iterdir()) == ["", ".so"]
        assert Kernels(paths.pop()).key

    @pytest.fixture
    def library(self, compiled, cache) -> Path:
        """A copy, in the cache folder, of what has been compiled before."""
        cache.mkdir(parents=True, mode=0o700)
        return Path(shutil.copy(compiled.path, cache))

    def test_a_library_that_is_there_is_used_again(self, library, cache, monkeypatch):
        monkeypatch.setattr(building, "_compile", None)
        assert building.built(cache) == library

    def test_a_file_that_is_no_library_is_told(self, library):
        library.write_bytes(b"not a library")
        with pytest.warns(UserWarning, match="no compiled kernels"):
            assert kernels() is None

    @pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs POSIX permissions")
    def test_a_library_that_others_can_write_is_not_run(self, library):
        library.chmod(library.stat().st_mode | stat.S_IWOTH)
        with pytest.warns(UserWarning, match="can be written by others"):
            assert kernels() is None

    def test_other_sources_or_another_compiler_make_another_library(self, cache, monkeypatch):
        compiler = building._compiler()
        key = building._key(compiler)
        monkeypatch.setattr(building, "_FLAGS", (*building._FLAGS, "-DOTHER"))
        assert building._key(compiler) != key

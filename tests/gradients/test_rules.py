"""Every kind of layer, over its parameters, against one record at a time."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

few = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
sizes = st.sampled_from([1, 2, 5])
dtypes = st.sampled_from([torch.float32, torch.float64])
booleans = st.booleans()


class FirstOf(nn.Module):
    """The first output of a layer that gives several, summed with what the others hold."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, inputs: Tensor) -> Tensor:
        output, state = self.layer(inputs)
        states = state if isinstance(state, tuple) else (state,)
        return output + sum(part.square().sum((0, 2)).view(-1, 1, 1) for part in states)


def check(agree, model: nn.Module, dtype: torch.dtype, *shape: int, **settings) -> None:
    model = model.to(dtype)
    agree(model, torch.randn(shape, dtype=dtype), torch.randn(shape[0], dtype=dtype), **settings)


@few
@given(size=sizes, lead=st.lists(st.integers(1, 3), max_size=2), bias=booleans, dtype=dtypes)
def test_linear(agree, size, lead, bias, dtype) -> None:
    model = nn.Sequential(nn.Linear(4, 6, bias=bias), nn.Tanh(), nn.Linear(6, 3))
    check(agree, model, dtype, size, *lead, 4)


@settings(few, max_examples=30)
@given(
    size=sizes,
    dims=st.integers(1, 3),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 2),
    dilation=st.integers(1, 2),
    padding=st.sampled_from([0, 1, 2, "same", "valid"]),
    groups=st.sampled_from([1, 2]),
    mode=st.sampled_from(["zeros", "reflect", "circular"]),
    bias=booleans,
    dtype=dtypes,
)
def test_convolution(agree, size, dims, kernel, stride, dilation, padding, groups, mode, bias, dtype) -> None:
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
    stride = 1 if padding == "same" else stride
    first = kind(
        2,
        4,
        kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        padding_mode=mode,
        bias=bias,
    )
    model = nn.Sequential(first, nn.Tanh(), kind(4, 2, 1, stride=2))
    check(agree, model, dtype, size, 2, *(6, 5, 7)[:dims])


@few
@given(
    size=sizes, dims=st.integers(1, 3), stride=st.integers(1, 2), groups=st.sampled_from([1, 2]), dtype=dtypes
)
def test_transposed_convolution(agree, size, dims, stride, groups, dtype) -> None:
    kind = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[dims - 1]
    layer = kind(2, 4, 3, stride=stride, padding=1, output_padding=stride - 1, groups=groups)
    check(agree, nn.Sequential(layer, nn.Tanh(), kind(4, 2, 2)), dtype, size, 2, *(4, 3, 3)[:dims])


@pytest.mark.parametrize("way", ["grouped", "grouped, kept", "windows", "windows, kept", "pixels"])
def test_every_way_of_a_convolution(run, way) -> None:
    model = nn.Sequential(nn.Conv2d(32, 24, 3, padding=1, stride=2), nn.Flatten()).double()
    inputs, targets = torch.randn(5, 32, 5, 5, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    tried = run(model, inputs, targets, method="fused").engine.choices
    key = next(name for name in tried["ways"] if name.startswith("convolution ["))
    formats = {name: "contiguous" for name in tried["ways"] if name.startswith("format")}
    choices = {**tried, "ways": {**tried["ways"], **formats, key: way}}
    found = run(model, inputs, targets, method="fused", choices=choices)
    assert found.engine.choices["ways"][key] == way
    expected = run(model, inputs, targets, method="loop")
    torch.testing.assert_close(found.total, expected.total, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(found.norms, expected.norms, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("way", ["products", "products, kept", "gram"])
def test_every_way_of_a_sequence(run, way) -> None:
    model = nn.Linear(6, 7).double()
    inputs, targets = torch.randn(5, 3, 6, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    tried = run(model, inputs, targets, method="fused").engine.choices
    key = next(name for name in tried["ways"] if name.startswith("sequence"))
    found = run(
        model, inputs, targets, method="fused", choices={**tried, "ways": {**tried["ways"], key: way}}
    )
    assert found.engine.choices["ways"][key] == way
    expected = run(model, inputs, targets, method="loop")
    torch.testing.assert_close(found.total, expected.total, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(found.norms, expected.norms, rtol=1e-10, atol=1e-12)


def test_a_gram_norm_is_not_too_small_where_its_terms_cancel(run) -> None:
    model = nn.Linear(64, 64, bias=False)
    signs = torch.tensor([1.0, -1.0]).repeat(8).view(1, 16, 1)
    inputs = torch.randn(1, 1, 64).expand(1, 16, 64) * 100 + torch.randn(1, 16, 64) * 1e-3
    loss = lambda outputs, targets: (outputs * signs).sum((1, 2))  # noqa: E731
    tried = run(model, inputs, torch.zeros(1), loss=loss, method="fused").engine.choices
    choices = {
        **tried,
        "ways": {"sequence 16 64x64": "gram", **{k: v for k, v in tried["ways"].items() if "format" in k}},
    }
    found = run(model, inputs, torch.zeros(1), loss=loss, method="fused", choices=choices)
    true = torch.einsum("bti,bto->boi", inputs.double(), signs.double().expand(1, 16, 64)).norm()
    assert float(found.norms) >= float(true)


@pytest.mark.parametrize("memory_format", ["contiguous", "channels last"])
def test_both_memory_formats(run, memory_format) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.Tanh(), nn.Conv2d(4, 2, 3), nn.Flatten())
    inputs, targets = torch.randn(4, 3, 7, 7), torch.randn(4)
    choices = {"ways": {"format float32[3, 7, 7] float32[]": memory_format}}
    found = run(model, inputs, targets, method="fused", choices=choices)
    expected = run(model, inputs, targets, method="loop")
    torch.testing.assert_close(found.total, expected.total, rtol=1e-4, atol=1e-6)
    assert memory_format in found.engine.choices["ways"].values()


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "layer",
    [
        lambda affine: nn.GroupNorm(2, 4, affine=affine),
        lambda affine: nn.LayerNorm([4, 6], elementwise_affine=affine),
        lambda affine: nn.LayerNorm(6, elementwise_affine=affine),
        lambda affine: nn.RMSNorm(6, elementwise_affine=affine),
        lambda affine: nn.InstanceNorm1d(4, affine=affine),
    ],
)
def test_normalisation(agree, layer, affine, dtype) -> None:
    model = nn.Sequential(nn.Conv1d(4, 4, 1), layer(affine), nn.Tanh(), nn.Conv1d(4, 2, 1))
    check(agree, model, dtype, 3, 4, 6)


def test_normalisation_of_images(agree) -> None:
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.Conv2d(4, 2, 2)
    )
    check(agree, model, torch.float64, 3, 2, 6, 5)


@few
@given(
    size=sizes,
    padding=st.sampled_from([None, 1, -1]),
    lead=st.lists(st.integers(1, 4), max_size=2),
    dtype=dtypes,
)
def test_embedding(agree, size, padding, lead, dtype) -> None:
    model = nn.Sequential(nn.Embedding(5, 4, padding_idx=padding), nn.Linear(4, 2)).to(dtype)
    agree(model, torch.randint(0, 5, (size, *lead)), torch.randn(size, dtype=dtype))


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("padding", [None, 2])
def test_embedding_bag(agree, mode, padding) -> None:
    model = nn.Sequential(
        nn.EmbeddingBag(5, 4, mode=mode, padding_idx=padding), nn.Tanh(), nn.Linear(4, 2)
    ).double()
    agree(model, torch.randint(0, 5, (4, 6)), torch.randn(4, dtype=torch.float64))


@settings(few, max_examples=20)
@given(
    kind=st.sampled_from([nn.LSTM, nn.GRU, nn.RNN]),
    size=sizes,
    steps=st.integers(1, 4),
    layers=st.integers(1, 2),
    both=booleans,
    bias=booleans,
    dtype=dtypes,
)
def test_recurrent(agree, kind, size, steps, layers, both, bias, dtype) -> None:
    layer = kind(3, 4, num_layers=layers, bidirectional=both, bias=bias, batch_first=True)
    check(agree, FirstOf(layer), dtype, size, steps, 3, methods=["fused"])


def test_recurrent_with_relu(agree) -> None:
    check(
        agree,
        FirstOf(nn.RNN(3, 4, nonlinearity="relu", batch_first=True)),
        torch.float64,
        3,
        5,
        3,
        methods=["fused"],
    )


class TimeFirst(nn.Module):
    """Layers that want time in dimension 0."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent, self.linear, self.norm = nn.GRU(3, 4), nn.Linear(4, 4), nn.LayerNorm(4)

    def forward(self, inputs: Tensor) -> Tensor:
        output, _ = self.recurrent(inputs.transpose(0, 1))
        return self.norm(self.linear(output).tanh()).transpose(0, 1)


class Flattened(nn.Module):
    """Layers that see records and positions in one dimension, in either order."""

    def __init__(self, records_first: bool) -> None:
        super().__init__()
        self.records_first = records_first
        self.linear, self.norm, self.convolution = nn.Linear(3, 4), nn.GroupNorm(2, 4), nn.Conv1d(1, 2, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        records, steps, _ = inputs.shape
        ordered = inputs if self.records_first else inputs.transpose(0, 1)
        hidden = self.norm(self.linear(ordered.reshape(-1, 3)))
        hidden = self.convolution(hidden.unsqueeze(1)).flatten(1)
        if self.records_first:
            return hidden.view(records, steps, -1)
        return hidden.view(steps, records, -1).transpose(0, 1)


@pytest.mark.parametrize(
    "model", [TimeFirst(), Flattened(True), Flattened(False)], ids=lambda m: type(m).__name__
)
@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_records_are_found_wherever_they_are(agree, model, steps) -> None:
    check(agree, model, torch.float64, 3, steps, 3, methods=["fused"])


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_transformer_layers(agree, batch_first, norm_first) -> None:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(
                8, 2, 16, dropout=0.0, batch_first=batch_first, norm_first=norm_first
            )

        def forward(self, inputs: Tensor) -> Tensor:
            inputs = inputs if batch_first else inputs.transpose(0, 1)
            output = self.layer(inputs)
            return output if batch_first else output.transpose(0, 1)

    for training in (True, False):
        check(agree, Encoder().train(training), torch.float64, 3, 4, 8)


@pytest.mark.parametrize("settings", [{}, {"kdim": 3, "vdim": 5}, {"bias": False}], ids=str)
def test_multihead_attention(agree, settings) -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.MultiheadAttention(8, 2, batch_first=True, **settings)

        def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            return self.layer(query, key, value, need_weights=False)[0]

    inputs = [
        torch.randn(3, 4, features) for features in (8, settings.get("kdim", 8), settings.get("vdim", 8))
    ]
    agree(Attention(), tuple(inputs), torch.randn(3))


def test_scaled_dot_product_attention_between_linear_layers(agree) -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mix, self.out = nn.Linear(6, 18), nn.Linear(6, 6)

        def forward(self, inputs: Tensor) -> Tensor:
            parts = self.mix(inputs).view(*inputs.shape[:2], 3, 2, 3).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
            return self.out(mixed.transpose(1, 2).flatten(2))

    check(agree, Attention(), torch.float64, 3, 5, 6)


class Elementwise(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.position = nn.Parameter(torch.randn(1, 4, 3))
        self.scale = nn.Parameter(torch.randn(3))
        self.shift = nn.Parameter(torch.randn(()))
        self.matrix = nn.Parameter(torch.randn(3, 5))
        self.slope = nn.PReLU()
        self.slopes = nn.PReLU(4)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.slopes((self.position + inputs) * self.scale + self.shift)
        return self.slope(hidden @ self.matrix)


def test_parameters_used_elementwise_or_as_matrices(agree) -> None:
    check(agree, Elementwise(), torch.float64, 3, 4, 3)


class Reused(nn.Module):
    """One layer three times, and an embedding that is also the output matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.middle = nn.Linear(4, 4)
        self.convolution = nn.Conv1d(3, 3, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.embedding(tokens)
        for _ in range(3):
            hidden = self.middle(hidden).tanh() + self.convolution(hidden)
        return F.linear(hidden, self.embedding.weight)


def test_tied_weights_and_layers_used_several_times(agree) -> None:
    agree(Reused().double(), torch.randint(0, 7, (4, 3)), torch.randn(4, dtype=torch.float64))


def test_overlapping_parts_of_one_parameter(agree) -> None:
    class Parts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 4))

        def forward(self, inputs: Tensor) -> Tensor:
            return (
                F.linear(inputs, self.weight[:4]).tanh() @ self.weight[2:].t()
                + F.linear(inputs, self.weight)[:, :4]
            )

    check(agree, Parts(), torch.float64, 3, 4)


def test_frozen_parameters_and_unused_ones(agree) -> None:
    class Partly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.unused = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
            self.first.weight.requires_grad_(False)
            self.second.bias.requires_grad_(False)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.second(self.first(inputs).tanh())

    check(agree, Partly(), torch.float64, 3, 4)


def test_parameters_used_without_gradient_do_not_count(agree) -> None:
    class Stopped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, inputs: Tensor) -> Tensor:
            with torch.no_grad():
                offset = self.layer(inputs)
            return self.layer(inputs) * offset

    check(agree, Stopped(), torch.float64, 3, 4)


def test_activations_in_place(agree) -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 6), nn.LeakyReLU(inplace=True))
    check(agree, model, torch.float64, 3, 4)

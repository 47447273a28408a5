"""Networks by name."""

import json
import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from discreet import models
from discreet.errors import UserError
from discreet.models.activations import TemperedSigmoid, activation

SMALL = {
    "resnet18-gn": {"width": 8, "groups": 4},
    "wrn-16-4": {"widen": 1},
    "transformer-small": {"width": 16},
}
SHAPES = {
    "linear": (5,),
    "mlp": (5,),
    "cnn-mnist": (1, 28, 28),
    "cnn-cifar": (3, 16, 16),
    "cnn-scatter": (81, 7, 7),
    "resnet18-gn": (3, 8, 8),
    "wrn-16-4": (3, 8, 8),
    "lstm-imdb": (12,),
    "bow-imdb": (12,),
    "transformer-small": (12,),
}
TEXT_MODELS = ("lstm-imdb", "bow-imdb", "transformer-small")


def small(name: str) -> nn.Module:
    options = dict(SMALL.get(name, {}))
    if name in TEXT_MODELS:
        options["vocabulary"] = 50
    torch.manual_seed(0)
    return models.build(name, SHAPES[name], 4, **options)


def some_inputs(name: str, count: int = 3) -> torch.Tensor:
    torch.manual_seed(1)
    if name in TEXT_MODELS:
        tokens = torch.randint(1, 50, (count, *SHAPES[name]))
        tokens[0, 5:] = 0
        return tokens
    return torch.randn(count, *SHAPES[name])


def records_do_not_mix(network: nn.Module, inputs: torch.Tensor) -> bool:
    beside_one, beside_another = network(inputs[[0, 1]])[0], network(inputs[[0, 2]])[0]
    return torch.allclose(beside_one, beside_another, atol=1e-5)


@pytest.mark.parametrize("name", models.names())
def test_every_network_gives_logits_and_keeps_records_apart(name: str) -> None:
    network, inputs = small(name), some_inputs(name)
    assert network(inputs).shape == (3, 4)
    assert records_do_not_mix(network, inputs)


def test_a_network_with_batch_normalisation_is_found_to_mix() -> None:
    network = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4))
    assert not records_do_not_mix(network, torch.randn(3, 5))


@pytest.mark.parametrize("name", models.names())
def test_every_parameter_has_a_gradient_per_record(name: str) -> None:
    network, inputs = small(name), some_inputs(name)
    parameters = dict(network.named_parameters())

    def loss(values: dict[str, torch.Tensor], row: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(network, values, (row[None],)).square().sum()  # type: ignore[no-any-return]

    per_record = torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, inputs)
    alone = torch.autograd.grad(network(inputs[1:2]).square().sum(), list(parameters.values()))
    for (key, found), expected in zip(per_record.items(), alone, strict=True):
        assert torch.allclose(found[1], expected, atol=1e-4), key
        assert expected.abs().sum() > 0, key


@pytest.mark.parametrize("name", models.names())
def test_a_network_can_be_rebuilt_from_json(name: str) -> None:
    options = {**SMALL.get(name, {}), **({"vocabulary": 50} if name in TEXT_MODELS else {})}
    spec = models.ModelSpec(name=name, input_shape=SHAPES[name], classes=4, options=options)
    first = spec.build()
    again = models.ModelSpec.from_json(json.loads(json.dumps(spec.as_json()))).build()
    again.load_state_dict(first.state_dict())
    inputs = some_inputs(name)
    assert torch.equal(first(inputs), again(inputs))


@pytest.mark.parametrize(
    ("name", "shape", "classes", "count"),
    [
        ("linear", (1, 28, 28), 10, 7_850),
        ("cnn-mnist", (1, 28, 28), 10, 26_010),
        ("cnn-cifar", (3, 32, 32), 10, 550_570),
        ("cnn-scatter", (81, 7, 7), 10, 33_066),
        ("resnet18-gn", (3, 32, 32), 10, 11_173_962),
    ],
)
def test_networks_have_the_sizes_that_the_papers_give(
    name: str, shape: tuple[int, ...], classes: int, count: int
) -> None:
    assert sum(each.numel() for each in models.build(name, shape, classes).parameters()) == count


def test_networks_start_from_the_seed_of_torch() -> None:
    first, second = small("mlp"), small("mlp")
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: models.build("cnn", (1, 28, 28), 10), "no model named 'cnn'; there are linear, mlp"),
        (
            lambda: models.build("mlp", (5,), 2, widht=3),
            "no option 'widht'; its options are width=128",
        ),
        (lambda: models.build("linear", (5,), 2, width=3), "its options are none"),
        (lambda: models.build("mlp", (5,), 2, width="wide"), "width is 'wide'; it must be of type int"),
        (lambda: models.build("mlp", (5,), 2, width=True), "width is True; it must be of type int"),
        (lambda: models.build("mlp", (5,), 2, act="sine"), "activation is 'sine'; it must be one of tanh"),
        (lambda: models.build("cnn-mnist", (5,), 2), r"needs \(channels, height, width\)"),
        (lambda: models.build("cnn-mnist", (1, 8, 8), 2), "too small"),
        (lambda: models.build("bow-imdb", (3, 8, 8), 2), "of token ids"),
        (lambda: models.build("wrn-16-4", (3, 8, 8), 2, depth=17), "depth is 17"),
        (lambda: models.build("resnet18-gn", (3, 8, 8), 2, width=10), "groups"),
        (lambda: models.build("transformer-small", (9,), 2, width=10, heads=4), "multiple of heads"),
    ],
)
def test_what_cannot_be_built_is_explained(build: Callable[[], nn.Module], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        build()


@pytest.mark.parametrize(
    ("shape", "tokens", "name"),
    [
        ((28,), False, "mlp"),
        ((1, 28, 28), False, "cnn-mnist"),
        ((3, 32, 32), False, "cnn-cifar"),
        ((1, 4, 4), False, "mlp"),
        ((81, 7, 7), False, "cnn-scatter"),
        ((256,), True, "bow-imdb"),
    ],
)
def test_the_default_network_fits_the_shape(shape: tuple[int, ...], tokens: bool, name: str) -> None:
    assert models.default_name(shape, tokens=tokens) == name
    models.build(name, shape, 3)


def test_a_tempered_sigmoid_is_tanh_unless_told_otherwise() -> None:
    values = torch.linspace(-3, 3, 13)
    assert torch.allclose(TemperedSigmoid()(values), torch.tanh(values), atol=1e-6)
    told = activation("tempered-sigmoid:1.5,3,0.5")(values)
    assert torch.allclose(told, 1.5 * torch.sigmoid(3 * values) - 0.5)


@pytest.mark.parametrize("name", ["tempered-sigmoid:1,2", "tanh:1,2,3", "tempered-sigmoid:a,b,c"])
def test_constants_that_cannot_be_read_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="activation is"):
        activation(name)


@pytest.mark.parametrize("name", TEXT_MODELS)
def test_a_text_without_words_gives_finite_logits(name: str) -> None:
    assert small(name)(torch.zeros(2, *SHAPES[name], dtype=torch.int64)).isfinite().all()


@pytest.mark.parametrize("name", ["bow-imdb", "transformer-small"])
def test_what_stands_in_padding_does_not_matter(name: str) -> None:
    network, inputs = small(name), some_inputs(name)
    with torch.no_grad():
        before = network(inputs)
        embedding = next(each for each in network.modules() if isinstance(each, nn.Embedding))
        embedding.weight[0] += 5.0
        after = network(inputs)
    assert torch.allclose(before, after, atol=1e-5)


def test_a_bag_of_words_forgets_their_order() -> None:
    network, inputs = small("bow-imdb"), some_inputs("bow-imdb")
    assert torch.allclose(network(inputs), network(inputs.flip(1)), atol=1e-6)


def test_logits_start_small_enough_to_learn() -> None:
    for name in models.names():
        loss = nn.functional.cross_entropy(small(name)(some_inputs(name)), torch.tensor([0, 1, 2]))
        assert loss.item() < 3 * math.log(4), name

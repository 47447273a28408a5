"""Ways to take one training step: plain training, this package's engines, other libraries."""

import copy
import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from discreet.bench.speed_jax import JaxPrivacy
from discreet.bench.speed_stepper import CLIP_NORM, LEARNING_RATE, Stepper
from discreet.gradients import FlatClipping, FlatLayout, GradientEngine
from discreet.gradients.choosing import NO_KERNELS


class Plain(Stepper):
    """Ordinary SGD."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self._optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)

    def step(self, inputs: Tensor, targets: Tensor) -> None:
        """One step of SGD."""
        self._optimizer.zero_grad()
        F.cross_entropy(self.model(inputs), targets).backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()


class PlainChannelsLast(Plain):
    """Ordinary SGD in the memory format that suits convolutions on many processors."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model.to(memory_format=torch.channels_last))  # type: ignore[call-overload]

    def step(self, inputs: Tensor, targets: Tensor) -> None:
        """One step of SGD."""
        super().step(inputs.to(memory_format=torch.channels_last), targets)


class Ours(Stepper):
    """This package's engine by one of its methods."""

    def __init__(self, model: nn.Module, method: Any, choices: dict[str, Any] | None = None) -> None:
        super().__init__(model)
        self._layout = FlatLayout.of(model)
        self._weights = self._layout.flatten(model)
        self._layout.bind(model, self._weights)
        self._engine = GradientEngine(model, _losses, self._layout, method=method, choices=choices)
        self._sum, self._noise = self._layout.zeros(), self._layout.zeros()

    def step(self, inputs: Tensor, targets: Tensor) -> None:
        """One step of DP-SGD."""
        self._engine.clipped_sum(inputs, targets, FlatClipping(clip_norm=CLIP_NORM), self._sum)
        self._sum.add_(self._noise.normal_(std=CLIP_NORM))
        self._weights.add_(self._sum, alpha=-LEARNING_RATE / len(targets))

    def clipped_sum(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """The engine's sum."""
        self._engine.clipped_sum(inputs, targets, FlatClipping(clip_norm=CLIP_NORM), self._sum)
        return self._sum.clone()


class Opacus(Stepper):
    """Opacus with per-record gradients kept: by hooks, or by functorch for every layer."""

    def __init__(self, model: nn.Module, *, functorch: bool) -> None:
        from opacus.grad_sample import GradSampleModule
        from opacus.optimizers import DPOptimizer

        self._names = [name for name, _ in model.named_parameters()]
        model = _with_opacus_layers(model)
        super().__init__(GradSampleModule(model, loss_reduction="sum", force_functorch=functorch))
        self._optimizer = DPOptimizer(
            torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE),
            noise_multiplier=1.0,
            max_grad_norm=CLIP_NORM,
            expected_batch_size=None,
            loss_reduction="sum",
        )

    def step(self, inputs: Tensor, targets: Tensor) -> None:
        """One step of DP-SGD."""
        self._gradients(inputs, targets)
        self._optimizer.step()

    def clipped_sum(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Opacus's sum before noise; the model's weights are lost."""
        self._gradients(inputs, targets)
        self._optimizer.clip_and_accumulate()
        return _in_original_order(
            self._names, self.model, [parameter.summed_grad for parameter in self._optimizer.params]
        )

    def _gradients(self, inputs: Tensor, targets: Tensor) -> None:
        self._optimizer.zero_grad()
        F.cross_entropy(self.model(inputs), targets, reduction="sum").backward()  # type: ignore[no-untyped-call]


class OpacusGhost(Stepper):
    """Opacus with ghost clipping: two backward passes, no per-record gradients."""

    def __init__(self, model: nn.Module) -> None:
        from opacus.grad_sample import GradSampleModuleFastGradientClipping
        from opacus.optimizers import DPOptimizerFastGradientClipping
        from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

        self._names = [name for name, _ in model.named_parameters()]
        model = _with_opacus_layers(model)
        super().__init__(
            GradSampleModuleFastGradientClipping(model, loss_reduction="sum", max_grad_norm=CLIP_NORM)
        )
        self._optimizer = DPOptimizerFastGradientClipping(
            torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE),
            noise_multiplier=1.0,
            max_grad_norm=CLIP_NORM,
            expected_batch_size=None,
            loss_reduction="sum",
        )
        criterion = nn.CrossEntropyLoss(reduction="sum")
        self._loss = DPLossFastGradientClipping(self.model, self._optimizer, criterion, loss_reduction="sum")

    def step(self, inputs: Tensor, targets: Tensor) -> None:
        """One step of DP-SGD."""
        self._gradients(inputs, targets)
        self._optimizer.step()

    def clipped_sum(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Opacus's sum before noise; the model's weights are lost."""
        self._gradients(inputs, targets)
        return _in_original_order(
            self._names, self.model, [parameter.grad for parameter in self._optimizer.params]
        )

    def _gradients(self, inputs: Tensor, targets: Tensor) -> None:
        self._optimizer.zero_grad()
        self._loss(self.model(inputs), targets).backward()


def _losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(outputs, targets, reduction="none")


def _in_original_order(names: list[str], model: nn.Module, gradients: list[Tensor]) -> Tensor:
    """One flat vector, in the order of the names that Opacus keeps in its state dictionary."""
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        parameter.data = gradient
    found = {name.removeprefix("_module."): tensor for name, tensor in model.state_dict().items()}
    return torch.cat([found[name].flatten() for name in names])


def _with_opacus_layers(model: nn.Module) -> nn.Module:
    """The model with Opacus's own LSTM, which it asks for, with the same weights."""
    from opacus.layers import DPLSTM

    for name, child in list(model.named_children()):
        if isinstance(child, nn.LSTM):
            replaced = DPLSTM(
                child.input_size,
                child.hidden_size,
                num_layers=child.num_layers,
                batch_first=child.batch_first,
                bidirectional=child.bidirectional,
            )
            replaced.load_state_dict(child.state_dict())
            setattr(model, name, replaced)
        else:
            _with_opacus_layers(child)
    return model


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to take a step, and the package without which it cannot be tried."""

    build: Callable[[nn.Module], Stepper]
    needs: str | None = None

    @property
    def missing(self) -> str | None:
        """The package that it needs and that is not installed."""
        return self.needs if self.needs and importlib.util.find_spec(self.needs) is None else None


def _without_kernels(model: nn.Module) -> Stepper:
    return Ours(model, "fused", choices={"kernels": NO_KERNELS})


WAYS: dict[str, Way] = {
    "plain": Way(build=Plain),
    "plain, channels last": Way(build=PlainChannelsLast),
    "discreet fused": Way(build=lambda model: Ours(model, "fused")),
    "discreet without kernels": Way(build=_without_kernels),
    "discreet functional": Way(build=lambda model: Ours(model, "functional")),
    "opacus hooks": Way(build=lambda model: Opacus(model, functorch=False), needs="opacus"),
    "opacus functorch": Way(build=lambda model: Opacus(model, functorch=True), needs="opacus"),
    "opacus ghost": Way(build=OpacusGhost, needs="opacus"),
    "jax-privacy": Way(build=JaxPrivacy, needs="jax_privacy"),
}


def make(name: str, model: nn.Module) -> Stepper:
    """A stepper on its own copy of the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return WAYS[name].build(copy.deepcopy(model))

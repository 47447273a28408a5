"""JAX-Privacy's clipped gradients of the networks that are plain chains of layers, as a way to take a step."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from discreet.bench.speed_stepper import CLIP_NORM, LEARNING_RATE, Stepper

# What a layer computes, from its input and its parameters by name.
Layer = Callable[[Any, dict[str, Any]], Any]


class JaxPrivacy(Stepper):
    """One compiled step of JAX-Privacy with the torch model's layers and weights.

    XLA takes as many threads as there are processors, whatever torch was told.
    """

    def __init__(self, model: nn.Module) -> None:
        import jax
        import jax.numpy as jnp
        from jax_privacy.clipping import clipped_grad

        super().__init__(model)
        if not isinstance(model, nn.Sequential):
            raise NotImplementedError(f"{type(model).__name__} is no chain of layers")
        layers = [(name, _layer(child)) for name, child in model.named_children()]
        self._weights = {name: _array(parameter) for name, parameter in model.named_parameters()}
        self._key = jax.random.key(0)

        def loss(weights: dict[str, Any], inputs: Any, targets: Any) -> Any:
            for name, layer in layers:
                own = {
                    full.rpartition(".")[2]: value
                    for full, value in weights.items()
                    if full.startswith(f"{name}.")
                }
                inputs = layer(inputs, own)
            logs = jax.nn.log_softmax(inputs)
            return -jnp.take_along_axis(logs, targets[:, None], axis=1).sum()

        clipped = clipped_grad(loss, l2_clip_norm=CLIP_NORM, batch_argnums=(1, 2))

        def step(weights: dict[str, Any], key: Any, inputs: Any, targets: Any) -> tuple[dict[str, Any], Any]:
            key, own = jax.random.split(key)
            total = clipped(weights, inputs, targets)
            keys = dict(zip(weights, jax.random.split(own, len(weights)), strict=True))

            def moved(name: str) -> Any:
                noise = CLIP_NORM * jax.random.normal(keys[name], weights[name].shape)
                return weights[name] - LEARNING_RATE / len(targets) * (total[name] + noise)

            return {name: moved(name) for name in weights}, key

        self._clipped, self._step = jax.jit(clipped), jax.jit(step)

    def step(self, inputs: Tensor, targets: Tensor) -> None:
        """One step of DP-SGD."""
        import jax

        state = self._step(self._weights, self._key, _array(inputs), _array(targets))
        self._weights, self._key = jax.block_until_ready(state)

    def clipped_sum(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """JAX-Privacy's sum."""
        import numpy as np

        found = self._clipped(self._weights, _array(inputs), _array(targets))
        return torch.cat([torch.from_numpy(np.array(found[name])).flatten() for name in self._weights])


def _array(tensor: Tensor) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(tensor.detach().numpy())


def _layer(layer: nn.Module) -> Layer:
    """What JAX has to compute in place of a torch layer."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    if isinstance(layer, nn.Conv2d):
        sides = [(side, side) for side in layer.padding if isinstance(side, int)]
        settings: dict[str, Any] = {
            "window_strides": layer.stride,
            "padding": sides,
            "dimension_numbers": ("NCHW", "OIHW", "NCHW"),
        }
        return lambda x, own: (
            lax.conv_general_dilated(x, own["weight"], **settings) + own["bias"][:, None, None]
        )
    if isinstance(layer, nn.MaxPool2d):
        size, stride = ((1, 1, *_pair(value)) for value in (layer.kernel_size, layer.stride))
        return lambda x, own: lax.reduce_window(x, -jnp.inf, lax.max, size, stride, "VALID")
    if isinstance(layer, nn.GroupNorm) and not layer.affine:
        groups, eps = layer.num_groups, layer.eps

        def normalized(x: Any, own: dict[str, Any]) -> Any:
            parts = x.reshape(x.shape[0], groups, -1)
            mean, variance = parts.mean(2, keepdims=True), parts.var(2, keepdims=True)
            return ((parts - mean) / jnp.sqrt(variance + eps)).reshape(x.shape)

        return normalized
    simple: dict[type[nn.Module], Layer] = {
        nn.Linear: lambda x, own: x @ own["weight"].T + own["bias"],
        nn.Tanh: lambda x, own: jnp.tanh(x),
        nn.ReLU: lambda x, own: jax.nn.relu(x),
        nn.Flatten: lambda x, own: x.reshape(x.shape[0], -1),
    }
    if type(layer) not in simple:
        raise NotImplementedError(f"{type(layer).__name__} is not written for JAX here")
    return simple[type(layer)]


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])

"""Adam with the noise's own share taken out of the second moment (DP-AdamBC)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch


class AdamBC(torch.optim.Optimizer):
    """Adam whose denominator is sqrt(max(v - Phi, floor)), Phi being the variance that the noise put into v.

    Tang, Shpilevskiy and Lecuyer, "DP-AdamBC: Your DP-Adam Is Actually DP-SGD (Unless You Apply Bias Correction)",
    AAAI 2024. Phi is public: the run writes the noise variance of each release (the standard deviation over the
    expected batch size, squared) into `group["noise_variance"]` before the step. Where the noise changes from one
    release to the next, Phi is averaged exactly as the second moment is.

    Args:
        params: the parameters to move.
        lr: the learning rate.
        betas: decay of the first and second moment.
        floor: gamma' of the paper, the smallest corrected second moment.
    """

    def __init__(
        self,
        params: Iterable[torch.nn.Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        floor: float = 1e-8,
    ) -> None:
        if not floor > 0:
            raise ValueError(f"floor is {floor}; the corrected second moment needs a positive floor")
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"betas is {betas}; each lies in [0, 1)")
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "floor": floor, "noise_variance": 0.0})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move every parameter by one corrected Adam step."""
        if closure is not None:
            raise ValueError("AdamBC takes released gradients only, no closure")
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad, group)

    def _move(self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["step"], state["noise"] = 0, 0.0
            state["first"] = torch.zeros_like(parameter)
            state["second"] = torch.zeros_like(parameter)
        beta1, beta2 = group["betas"]
        state["step"] += 1
        state["first"].mul_(beta1).add_(gradient, alpha=1 - beta1)
        state["second"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        state["noise"] = beta2 * state["noise"] + (1 - beta2) * group["noise_variance"]
        unbias = 1 - beta2 ** state["step"]
        variance = (state["second"] - state["noise"]).div_(unbias).clamp_(min=group["floor"])
        parameter.addcdiv_(
            state["first"], variance.sqrt_(), value=-group["lr"] / (1 - beta1 ** state["step"])
        )

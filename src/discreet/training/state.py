"""Everything that an update can change, in one place."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from discreet.gradients.layout import FlatLayout
    from discreet.optimizers import OptimizerChoice


@dataclass
class TrainState:
    """The flat parameter vector, the optimizer with its memory, the weights' average, and how far the run is.

    The model's trainable parameters are views of `parameters`, and so are those that the optimizer moves: a step
    of the optimizer is a change of the model. To reject a candidate is to `restore` the snapshot taken before it.
    """

    parameters: Tensor
    gradient: Tensor
    optimizer: torch.optim.Optimizer
    average: Tensor | None
    releases: int = 0

    @classmethod
    def of(
        cls, model: nn.Module, layout: FlatLayout, choice: OptimizerChoice, *, averaged: bool
    ) -> TrainState:
        """The state before the first release, the model's current weights being the start."""
        parameters = layout.flatten(model)
        layout.bind(model, parameters)
        gradient = torch.zeros_like(parameters)
        leaves = [nn.Parameter(view) for view in layout.views(parameters).values()]
        for leaf, grad in zip(leaves, layout.views(gradient).values(), strict=True):
            leaf.grad = grad
        return cls(
            parameters=parameters,
            gradient=gradient,
            optimizer=choice.build(leaves),
            average=parameters.clone() if averaged else None,
        )

    def step(self, *, learning_rate: float, noise_variance: float, average: float | None) -> None:
        """Apply the released gradient that lies in `gradient`."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
            if "noise_variance" in group:
                group["noise_variance"] = noise_variance
        self.optimizer.step()
        self.releases += 1
        if average is not None and self.average is not None:
            # The first few releases average over what there is, so that the start does not linger.
            self.average.lerp_(self.parameters, 1.0 - min(average, self.releases / (self.releases + 10.0)))

    def released(self) -> Tensor:
        """The weights that a run gives out: the average where there is one, otherwise the last iterate."""
        return self.parameters if self.average is None else self.average

    def snapshot(self) -> dict[str, Any]:
        """A copy of everything, to `restore` later."""
        return {
            "parameters": self.parameters.clone(),
            "optimizer": copy.deepcopy(self.optimizer.state_dict()),
            "average": None if self.average is None else self.average.clone(),
            "releases": self.releases,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Put everything back as it was at the snapshot."""
        self.parameters.copy_(snapshot["parameters"])
        self.optimizer.load_state_dict(copy.deepcopy(snapshot["optimizer"]))
        if self.average is not None:
            self.average.copy_(snapshot["average"])
        self.releases = snapshot["releases"]

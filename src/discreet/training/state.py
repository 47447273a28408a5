"""Everything that an update can change, in one place."""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from discreet.schedules import Phase
from discreet.training.undo import Undo

if TYPE_CHECKING:
    from discreet.gradients.layout import FlatLayout
    from discreet.memory import Memory
    from discreet.memory.recollection import Recollection
    from discreet.optimizers import OptimizerChoice


@dataclass
class Selection:
    """What a run with a gate remembers from one trial to the next.

    All of it was released, or follows from what was; under `hidden` accounting the number of rejections is not, and
    is forgotten when a release ends.

    Attributes:
        rejected_in_a_row: trials rejected since the last acceptance.
        reference: what the gate compares the next metric with.
        scores: the noisy scores of the candidates that wait in the buffer.
        waiting: their noisy mean gradients, one row each; rows after `len(scores)` hold nothing.
        phase: where a phased decay has moved the parameters.
        measured: the last measurement of progress.
        unmeasured: whether an update was made since then.
        accepted: how many candidates have passed.
        trials: how many there were, where that may be known.
        claimed: what the method's paper would charge for the updates so far, as Renyi divergences at whole orders.
    """

    waiting: Tensor
    rejected_in_a_row: int = 0
    reference: float | None = None
    scores: list[float] = field(default_factory=list)
    phase: Phase = field(default_factory=Phase)
    measured: float | None = None
    unmeasured: bool = True
    accepted: int = 0
    trials: int = 0
    claimed: list[float] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Everything but the tensor."""
        record = {name: value for name, value in vars(self).items() if name != "waiting"}
        return {**record, "phase": asdict(self.phase)}

    def load(self, record: dict[str, Any], waiting: Tensor) -> None:
        """Take over what `to_json` wrote."""
        for name, value in record.items():
            setattr(self, name, Phase(**value) if name == "phase" else copy.copy(value))
        self.waiting.copy_(waiting)


@dataclass
class TrainState:
    """The flat parameter vector, the optimizer with its memory, the weights' average, and how far the run is.

    The model's trainable parameters are views of `parameters`, and so are those that the optimizer moves: a step
    of the optimizer is a change of the model. A candidate is tried by `propose`; then it is kept by `settle`, or
    taken back by `undo`.

    Attributes:
        releases: what was charged and done, rejected trials included where these are charged.
        updates: how often the weights were moved for good.
        recollection: what a recipe with a memory remembers of past releases.
    """

    parameters: Tensor
    gradient: Tensor
    optimizer: torch.optim.Optimizer
    average: Tensor | None
    releases: int = 0
    updates: int = 0
    selection: Selection | None = None
    recollection: Recollection | None = None

    @classmethod
    def of(
        cls,
        model: nn.Module,
        layout: FlatLayout,
        choice: OptimizerChoice,
        *,
        averaged: bool,
        buffered: int = -1,
        memory: Memory | None = None,
    ) -> TrainState:
        """The state before the first release, the model's current weights being the start.

        With `buffered` at 0 or above it keeps a `Selection`, with room for so many waiting candidates.
        """
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
            selection=None
            if buffered < 0
            else Selection(waiting=parameters.new_zeros(buffered, layout.size)),
            recollection=None if memory is None else memory.start(layout),
        )

    def step(self, *, learning_rate: float, noise_variance: float, average: float | None) -> None:
        """Apply the released gradient that lies in `gradient`, for good."""
        self.propose(learning_rate=learning_rate, noise_variance=noise_variance)
        self.settle(average=average)
        self.releases += 1

    def propose(self, *, learning_rate: float, noise_variance: float) -> None:
        """Move weights and optimizer by the gradient that lies in `gradient`."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
            if "noise_variance" in group:
                group["noise_variance"] = noise_variance
        self.optimizer.step()

    def settle(self, *, average: float | None) -> None:
        """Keep what was proposed: it is an update."""
        self.updates += 1
        if average is not None and self.average is not None:
            # The first few updates average over what there is, so that the start does not linger.
            self.average.lerp_(self.parameters, 1.0 - min(average, self.updates / (self.updates + 10.0)))

    def undo(self) -> Undo:
        """What takes proposals back, whatever the optimizer keeps in memory. Its buffers are made once."""
        return Undo(self.parameters, self.optimizer)

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
            "updates": self.updates,
            "selection": None
            if self.selection is None
            else (copy.deepcopy(self.selection.to_json()), self.selection.waiting.clone()),
            "recollection": None
            if self.recollection is None
            else (
                self.recollection.remembered,
                {name: tensor.clone() for name, tensor in self.recollection.tensors().items()},
            ),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Put everything back as it was at the snapshot."""
        self.parameters.copy_(snapshot["parameters"])
        self.optimizer.load_state_dict(copy.deepcopy(snapshot["optimizer"]))
        if self.average is not None:
            self.average.copy_(snapshot["average"])
        self.releases, self.updates = snapshot["releases"], snapshot["updates"]
        if self.selection is not None:
            self.selection.load(*snapshot["selection"])
        if self.recollection is not None:
            self.recollection.load(*snapshot["recollection"])

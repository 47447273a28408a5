"""What the recipes share whose candidates have to pass a noisy test before they are released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.errors import UserError
from discreet.gates.scores import LossChange
from discreet.gates.selecting import Selecting
from discreet.optimizers import SGD_OR_ADAM, OptimizerChoice, sgd_or_adam
from discreet.recipes.first_order import (
    FirstOrder,
    FurtherParts,
    require_finite,
    require_one_of,
    require_positive,
)
from discreet.sampling import PoissonSampler

if TYPE_CHECKING:
    from discreet.gates.gate import Gate


@dataclass(frozen=True, kw_only=True)
class Selective(FirstOrder):
    """Settings of every recipe with a gate.

    Under `visible` accounting a release is a trial, rejected ones included, and `releases` counts trials. Under
    `hidden` a release is an update of the weights, and `releases` counts those.

    Args:
        gate_noise_multiplier: sigma_v, noise over sensitivity of the score that is tested.
        gate_threshold: beta; a candidate passes if its noisy score is below beta times the bound of the score.
        claimed_epsilon: end the run where the paper's own formula, which counts updates only, reaches this epsilon.
            It is no guarantee of anything, and is there to repeat the papers' tables; the budget holds all the same.
        torch_optimizer: "SGD", or "Adam" as the papers have it on IMDb.
        momentum: mu, of SGD's heavy-ball momentum; a rejected candidate leaves none behind.
    """

    gate_noise_multiplier: float = 1.3
    gate_threshold: float = -1.0
    claimed_epsilon: float | None = None
    torch_optimizer: str = "SGD"
    momentum: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("gate_noise_multiplier", "claimed_epsilon"):
            require_positive(name, getattr(self, name))
        require_finite("gate_threshold", self.gate_threshold)
        require_one_of("torch_optimizer", self.torch_optimizer, SGD_OR_ADAM)

    def optimizer(self) -> OptimizerChoice:
        """SGD with momentum, or Adam, as torch has them."""
        return sgd_or_adam(self.torch_optimizer, self.momentum)

    def gate(self, sampler: PoissonSampler) -> Gate:
        """The test, for candidates whose batches `sampler` draws."""
        raise NotImplementedError

    def selecting(self, sampler: PoissonSampler) -> Selecting:
        """The gate with what comes after it; the gate alone, unless a recipe has more."""
        return Selecting(gate=self.gate(sampler))

    def further_parts(self, sampler: PoissonSampler) -> FurtherParts:
        """The gate, and where to end by the paper's formula."""
        return {"selecting": self.selecting(sampler), "claimed_budget": self.claimed_epsilon}


@dataclass(frozen=True, kw_only=True)
class LossSelective(Selective):
    """Settings of the recipes that look at the change of the loss on a validation batch.

    Args:
        gate_batch_size: B_v = q_v N, the mean size of the validation batch: a fresh Poisson sample in every trial, of
            the records that are trained on.
        gate_clip: C_v, the bound that the loss change is clipped to. Very small, it leaves little more than the sign.
    """

    gate_batch_size: int = 256
    gate_clip: float = 0.001

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("gate_batch_size", "gate_clip"):
            require_positive(name, getattr(self, name))

    def loss_change(self, sampler: PoissonSampler) -> LossChange:
        """The score of a candidate, before its noise."""
        return LossChange(sampler=self.gate_sampler(sampler), bound=self.gate_clip)

    def gate_sampler(self, sampler: PoissonSampler) -> PoissonSampler:
        """The validation batches."""
        examples = sampler.examples
        if self.gate_batch_size > examples:
            raise UserError(
                f"gate_batch_size is {self.gate_batch_size} but there are only {examples} records; it can be at "
                "most that many"
            )
        return PoissonSampler(examples=examples, rate=self.gate_batch_size / examples)

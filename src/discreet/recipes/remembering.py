"""What the recipes share that blend past releases into the next one."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from discreet.accounting.selective.memory import memory_multiplier
from discreet.errors import UserError
from discreet.optimizers import SGD_OR_ADAM, OptimizerChoice, sgd_or_adam
from discreet.recipes.dp_adam import DPAdam
from discreet.recipes.dp_sgd import DPSGD
from discreet.recipes.first_order import FirstOrder, FurtherParts, require_one_of
from discreet.sampling import PoissonSampler

if TYPE_CHECKING:
    from discreet.memory import Memory
    from discreet.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Remembering(FirstOrder):
    """Settings of every recipe with a memory of past releases.

    Args:
        fresh_weight: beta, in (0, 1]: what is fresh weighs beta, the memory 1 - beta.
        window: K; the last K - 1 releases are remembered.
        order: alpha, in (0, 1], of the fractional kernel (j + 1)^(alpha - 1); 1 leaves the power law out.
        torch_optimizer: "SGD", or "Adam", which takes the blends.
        momentum: mu, of SGD's heavy-ball momentum; the papers have none.
    """

    learning_rate: float = 2.0
    fresh_weight: float = 0.95
    window: int = 4
    order: float = 0.7
    torch_optimizer: str = "SGD"
    momentum: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.torch_optimizer == "AdamBC":
            raise UserError(
                "torch_optimizer is 'AdamBC', whose correction takes the noise of releases to be independent; blends "
                "share theirs: choose 'SGD' or 'Adam'"
            )
        require_one_of("torch_optimizer", self.torch_optimizer, SGD_OR_ADAM)
        self.memory()

    def memory(self) -> Memory:
        """The memory."""
        raise NotImplementedError

    def further_parts(self, sampler: PoissonSampler) -> FurtherParts:
        """The memory."""
        return {"memory": self.memory()}

    def optimizer(self) -> OptimizerChoice:
        """SGD, or Adam, as torch has them."""
        return sgd_or_adam(self.torch_optimizer, self.momentum)

    def matched(self, plan: Plan) -> FirstOrder:
        """The same recipe without a memory that costs the same: the one that a fair comparison is made with.

        Plain DP-SGD (or DP-Adam) at the noise multiplier that the plan of this recipe effectively has, for as many
        releases, with the same sensitivity and all other settings.
        """
        shared = {each.name: getattr(self, each.name) for each in fields(FirstOrder)}
        shared |= {
            "epochs": None,
            "releases": plan.releases,
            "noise_multiplier": memory_multiplier(plan.noise.multiplier, plan.sum_weight),
            "clip_norm": plan.clipping.rule.sensitivity,
            "clipping": "layer-wise" if self.clipping == "group-wise" else self.clipping,
        }
        return DPAdam(**shared) if self.torch_optimizer == "Adam" else DPSGD(**shared, momentum=self.momentum)


@dataclass(frozen=True, kw_only=True)
class Filtering(Remembering):
    """Settings of the recipes that take a weighted mean of past releases.

    Args:
        kernel: "fractional", "tempered" (fractional times exponential), "exponential", "uniform", or "none", which
            remembers nothing.
        tempering: lambda, at least 0, of the tempered and the exponential kernel, exp(-lambda j).
    """

    kernel: str = "fractional"
    tempering: float = 0.5

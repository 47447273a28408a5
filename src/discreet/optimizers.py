"""Which optimizer turns private gradients into weights: any of `torch.optim`, by name, and AdamBC.

An optimizer only ever sees released gradients, so whatever it does is post-processing and costs no privacy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from discreet.errors import UserError

if TYPE_CHECKING:
    import torch

_REFUSED = {
    "LBFGS": "it calls the loss several times per step, and each call would be a release of its own",
    "SparseAdam": "private gradients are dense: noise falls on every coordinate",
    "Optimizer": "it is the base class",
}


SGD_OR_ADAM = ("SGD", "Adam")
"""What the papers on selection and on memory take."""


@dataclass(frozen=True, kw_only=True)
class OptimizerChoice:
    """An optimizer's name and its settings, learning rate excepted (a schedule sets that at every release)."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def build(self, parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
        """The optimizer over `parameters`; its learning rate is set before the first step."""
        import torch

        if self.name in _REFUSED:
            raise UserError(f"optimizer {self.name} cannot be used here: {_REFUSED[self.name]}")
        if self.name == "AdamBC":
            from discreet.adambc import AdamBC

            kind: Any = AdamBC
        else:
            kind = getattr(torch.optim, self.name, None)
            if not (isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)):
                raise UserError(
                    f"optimizer is {self.name!r}; it can be AdamBC or a class of torch.optim such as SGD"
                )
        try:
            return kind(parameters, lr=0.0, **dict(self.settings))  # type: ignore[no-any-return]
        except (TypeError, ValueError) as error:
            raise UserError(f"optimizer {self.name}: {error}") from None


def sgd_or_adam(name: str, momentum: float) -> OptimizerChoice:
    """SGD with heavy-ball momentum, or Adam, as torch has them."""
    return OptimizerChoice(name=name, settings={"momentum": momentum} if name == "SGD" else {})

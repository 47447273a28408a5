"""From squared norms to the weights by which records enter the sum: the one place where all engines clip."""

from dataclasses import dataclass

import torch
from torch import Tensor

from discreet.gradients.clipping import ClippingRule
from discreet.gradients.layout import FlatLayout
from discreet.gradients.norms import round_up

_SLACK = 1e-9


@dataclass(frozen=True)
class Weighing:
    """A clipping rule applied to one layout.

    **Guarantee**: for every record, the L2 norm over all groups of weight times norm is at most the rule's
    sensitivity, which is checked for every record. A record whose gradient is not finite has weight 0.
    """

    rule: ClippingRule
    layout: FlatLayout
    groups: tuple[int, ...]
    group_count: int

    @classmethod
    def of(cls, rule: ClippingRule, layout: FlatLayout) -> "Weighing":
        """The rule on this layout; refuses groups that are not numbered 0 to G - 1."""
        groups = tuple(int(group) for group in rule.groups(layout))
        if len(groups) != len(layout.names) or set(groups) != set(range(max(groups) + 1)):
            raise ValueError(
                f"{type(rule).__name__} must give each parameter a group numbered from 0, got {groups}"
            )
        return cls(rule=rule, layout=layout, groups=groups, group_count=max(groups) + 1)

    def group_of(self, name: str) -> int:
        """The group of the parameter of this name."""
        return self.groups[self.layout.names.index(name)]

    def weigh(self, squared: Tensor) -> tuple[Tensor, Tensor]:
        """Norms rounded up and weights, both [B, G] in float64, from squared norms [B, G].

        A record whose gradient is not finite is given infinite norms.
        """
        norms = round_up(squared, self.layout.dtype)
        finite = norms.isfinite().all(dim=1, keepdim=True)
        norms = norms.where(finite, torch.inf)
        usable = norms.where(finite, 1.0)
        weights = self.rule.weights(usable)
        contributions = torch.linalg.vector_norm(weights * usable, dim=1)
        if not bool((contributions <= self.rule.sensitivity * (1 + _SLACK)).all()) or bool(
            (weights < 0).any()
        ):
            raise RuntimeError(
                f"{self.rule!r} gives weights that break its own sensitivity {self.rule.sensitivity}"
            )
        return norms, weights.where(finite, 0.0)

"""Clipping rules: how much of each record's gradient enters the sum, and how much one record can change it.

A rule sees the L2 norms of each record's gradient, one per group of parameters, and answers with the weights
by which the groups are multiplied. The norms that it sees are rounded up (see `discreet.gradients.norms`), so
that `weight * norm` bounds what the record really contributes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot, isfinite, sqrt
from typing import Literal, Protocol

import torch
from torch import Tensor

from discreet.errors import UserError
from discreet.gradients.layout import FlatLayout, module_of


class ClippingRule(Protocol):
    """What the engine asks of a clipping rule."""

    @property
    def sensitivity(self) -> float:
        """Bound on the L2 norm, over all parameters, of one record's contribution to the sum."""
        ...

    def groups(self, layout: FlatLayout) -> tuple[int, ...]:
        """The group, numbered from 0, of each parameter of the layout."""
        ...

    def weights(self, norms: Tensor) -> Tensor:
        """The weights [B, G] of records whose gradients have these norms [B, G]; finite and not negative."""
        ...


def _require_positive(rule: object, **values: float) -> None:
    for name, value in values.items():
        if not (isfinite(value) and value > 0):
            raise ValueError(f"{type(rule).__name__}.{name} must be positive and finite, got {value}")


@dataclass(frozen=True, kw_only=True)
class _OneGroup:
    """All parameters clipped together, to `clip_norm`."""

    clip_norm: float

    def __post_init__(self) -> None:
        _require_positive(self, clip_norm=self.clip_norm)

    @property
    def sensitivity(self) -> float:
        return self.clip_norm

    def groups(self, layout: FlatLayout) -> tuple[int, ...]:
        return (0,) * len(layout.names)


@dataclass(frozen=True, kw_only=True)
class FlatClipping(_OneGroup):
    """DP-SGD's clipping (Abadi et al. 2016): a gradient g becomes g min(1, C / |g|).

    Attributes:
        clip_norm: C, the sensitivity.
    """

    def weights(self, norms: Tensor) -> Tensor:
        """The weights min(1, C / norm)."""
        return (self.clip_norm / norms).clamp_(max=1)


@dataclass(frozen=True, kw_only=True)
class AutomaticClipping(_OneGroup):
    """Automatic clipping (Bu et al. 2023): a gradient g becomes C g / (|g| + gamma).

    Attributes:
        clip_norm: C (R in the paper, where it is 1 and goes into the learning rate), the sensitivity.
        stability: gamma; 0.01 is AUTO-S, 0 is AUTO-V.
    """

    stability: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isfinite(self.stability) and self.stability >= 0):
            raise ValueError(
                f"AutomaticClipping.stability must be finite and not negative, got {self.stability}"
            )

    def weights(self, norms: Tensor) -> Tensor:
        """The weights C / (norm + gamma)."""
        return self.clip_norm / (norms + self.stability)


@dataclass(frozen=True, kw_only=True)
class _WithBound(_OneGroup):
    """All parameters clipped together, by a public bound Z on the norms."""

    bound: float

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_positive(self, bound=self.bound)


@dataclass(frozen=True, kw_only=True)
class GlobalClipping(_WithBound):
    """DPSGD-Global (Bu et al. 2021): gradients within the bound are scaled by C / Z, the others dropped.

    Attributes:
        clip_norm: C, the sensitivity.
        bound: Z, public.
    """

    def weights(self, norms: Tensor) -> Tensor:
        """The weights C / Z where norm <= Z, else 0."""
        return torch.where(norms <= self.bound, self.clip_norm / self.bound, 0.0)


@dataclass(frozen=True, kw_only=True)
class ScaledClipping(_WithBound):
    """Gradients within the bound are scaled by C / Z, the others clipped to C.

    This is the clipping of DPSGD-Global-Adapt (Esipova et al. 2023) and of DPSR-CG (section 4.3). A bound
    that adapts is the caller's state: it moves with a noised count (`exceeding`), and the next step's rule is
    `dataclasses.replace(rule, bound=...)`.

    Attributes:
        clip_norm: C, the sensitivity.
        bound: Z, public.
    """

    def weights(self, norms: Tensor) -> Tensor:
        """The weights C / max(Z, norm)."""
        return self.clip_norm / norms.clamp(min=self.bound)

    def exceeding(self, norms: Tensor, *, ratio: float = 1.0) -> Tensor:
        """How many records' norms exceed `ratio` times the bound. **Guarantee**: sensitivity 1."""
        return (norms > ratio * self.bound).any(dim=1).sum()


@dataclass(frozen=True, kw_only=True)
class LayerClipping:
    """Each group of parameters clipped on its own, so that all together stay within `clip_norm`.

    **Guarantee**: the groups' norms C_g satisfy sum C_g^2 = clip_norm^2, so the joint sensitivity is
    `clip_norm`, not C_g. With G groups and no `shares`, C_g = clip_norm / sqrt(G).

    Attributes:
        clip_norm: C, the joint sensitivity.
        by: "module": a module's own parameters are one group; "parameter": each parameter is one.
        shares: Optional: for each group, by the name of its module or parameter, its relative C_g; they are
            scaled to the joint norm. Must name exactly the model's groups in their order.
        count: Optional: G, where `clip_norm` was computed for so many groups; a model with another number is
            refused.
    """

    clip_norm: float
    by: Literal["module", "parameter"] = "module"
    shares: Mapping[str, float] | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        _require_positive(self, clip_norm=self.clip_norm)
        if self.by not in ("module", "parameter"):
            raise ValueError(f'LayerClipping.by must be "module" or "parameter", got {self.by!r}')
        if self.shares is not None:
            _require_positive(self, **{f"shares[{name}]": share for name, share in self.shares.items()})

    @property
    def sensitivity(self) -> float:
        """The joint bound over all groups."""
        return self.clip_norm

    def groups(self, layout: FlatLayout) -> tuple[int, ...]:
        """The group of each parameter, numbered in the order of first appearance."""
        labels = [self._label(name) for name in layout.names]
        order = {label: number for number, label in enumerate(dict.fromkeys(labels))}
        if self.shares is not None and list(self.shares) != list(order):
            raise ValueError(
                f"LayerClipping.shares must name the groups {list(order)}, got {list(self.shares)}"
            )
        if self.count is not None and self.count != len(order):
            raise UserError(
                f"groups is {self.count}, and the model has {len(order)} layers with trainable parameters "
                f"({', '.join(order)}); say {len(order)}, which is what is charged for"
            )
        return tuple(order[label] for label in labels)

    def group_norms(self, count: int) -> list[float]:
        """C_g for each of `count` groups."""
        if self.shares is None:
            return [self.clip_norm / sqrt(count)] * count
        if len(self.shares) != count:
            raise ValueError(f"LayerClipping.shares names {len(self.shares)} groups, the norms have {count}")
        scale = self.clip_norm / hypot(*self.shares.values())
        return [scale * share for share in self.shares.values()]

    def weights(self, norms: Tensor) -> Tensor:
        """The weights min(1, C_g / norm_g)."""
        bounds = norms.new_tensor(self.group_norms(norms.shape[1]))
        return (bounds / norms).clamp_(max=1)

    def _label(self, name: str) -> str:
        return name if self.by == "parameter" else module_of(name)

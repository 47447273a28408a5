"""One recipe is one file. This is the list of them."""

from __future__ import annotations

from discreet.errors import UserError
from discreet.recipes.dp_adam import DPAdam
from discreet.recipes.dp_adambc import DPAdamBC
from discreet.recipes.dp_adamw import DPAdamW
from discreet.recipes.dp_optimizer import DPOptimizer
from discreet.recipes.dp_sgd import DPSGD
from discreet.recipes.dpsgd_br import DPSGDBR
from discreet.recipes.dpsr_cg import DPSRCG
from discreet.recipes.dpsur import DPSUR
from discreet.recipes.first_order import FirstOrder
from discreet.recipes.fo_dp_sgd import FODPSGD
from discreet.recipes.post_fm_dp_sgd import PostFMDPSGD
from discreet.recipes.sa_dp_sgd import SADPSGD
from discreet.recipes.sma_dp_sgd import SMADPSGD

_ALL: tuple[type[FirstOrder], ...] = (
    DPSGD,
    DPAdam,
    DPAdamW,
    DPAdamBC,
    DPOptimizer,
    DPSUR,
    DPSGDBR,
    DPSRCG,
    SADPSGD,
    FODPSGD,
    PostFMDPSGD,
    SMADPSGD,
)
RECIPES: dict[str, type[FirstOrder]] = {recipe.name: recipe for recipe in _ALL}


def find(name: str) -> type[FirstOrder]:
    """The recipe of that name."""
    if name not in RECIPES:
        raise UserError(f"recipe is {name!r}; there are {', '.join(RECIPES)}")
    return RECIPES[name]


__all__ = [
    "DPSGD",
    "DPSGDBR",
    "DPSRCG",
    "DPSUR",
    "FODPSGD",
    "RECIPES",
    "SADPSGD",
    "SMADPSGD",
    "DPAdam",
    "DPAdamBC",
    "DPAdamW",
    "DPOptimizer",
    "FirstOrder",
    "PostFMDPSGD",
    "find",
]

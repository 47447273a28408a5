"""Train PyTorch models on sensitive records with differential privacy, and prove what the result gives away.

    import discreet

    result = discreet.fit(model, data, discreet.DPSGD(epochs=20), discreet.Budget(epsilon=3, delta=1e-5))
    print(result.certificate.epsilon)

Names are imported when they are first used, so that `import discreet` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from discreet.accounting import Accounting, Budget, Certificate, epsilon
    from discreet.data import Records
    from discreet.errors import BudgetExhausted, CorruptFile, UserError
    from discreet.noise.key import RunKey
    from discreet.plan import Plan
    from discreet.recipes import (
        DPSGD,
        DPSGDBR,
        DPSRCG,
        DPSUR,
        FODPSGD,
        SADPSGD,
        SMADPSGD,
        DPAdam,
        DPAdamBC,
        DPAdamW,
        DPOptimizer,
        PostFMDPSGD,
    )
    from discreet.training.fit import fit, resume, start
    from discreet.training.outcome import Result, conclude
    from discreet.training.run import Release, Run

_HOMES = {
    "discreet.accounting": ("Accounting", "Budget", "Certificate", "epsilon"),
    "discreet.data": ("Records",),
    "discreet.errors": ("BudgetExhausted", "CorruptFile", "UserError"),
    "discreet.noise.key": ("RunKey",),
    "discreet.plan": ("Plan",),
    "discreet.recipes": (
        "DPSGD",
        "DPSGDBR",
        "DPSRCG",
        "DPSUR",
        "FODPSGD",
        "SADPSGD",
        "SMADPSGD",
        "DPAdam",
        "DPAdamBC",
        "DPAdamW",
        "DPOptimizer",
        "PostFMDPSGD",
    ),
    "discreet.training.fit": ("fit", "resume", "start"),
    "discreet.training.outcome": ("Result", "conclude"),
    "discreet.training.run": ("Release", "Run"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "DPSGD",
    "DPSGDBR",
    "DPSRCG",
    "DPSUR",
    "FODPSGD",
    "SADPSGD",
    "SMADPSGD",
    "Accounting",
    "Budget",
    "BudgetExhausted",
    "Certificate",
    "CorruptFile",
    "DPAdam",
    "DPAdamBC",
    "DPAdamW",
    "DPOptimizer",
    "Plan",
    "PostFMDPSGD",
    "Records",
    "Release",
    "Result",
    "Run",
    "RunKey",
    "UserError",
    "conclude",
    "epsilon",
    "fit",
    "resume",
    "start",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""Privacy accounting: events, certified bounds, filters, calibration, certificates. No torch.

Names are imported when they are first used, so that `import discreet.accounting` stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.accounting.budget import Accounting, Budget
    from discreet.accounting.calibration import calibrate_noise, calibrate_releases
    from discreet.accounting.composition import delta, epsilon
    from discreet.accounting.events import (
        Event,
        Gaussian,
        PoissonGaussian,
        PoissonPureDP,
        PureDP,
        event_from_json,
        joint_multiplier,
        register_event,
    )
    from discreet.accounting.profiles import Profile, privacy_profile
    from discreet.accounting.rdp import rdp_curve

__all__ = [
    "Accounting",
    "Budget",
    "Event",
    "Gaussian",
    "PoissonGaussian",
    "PoissonPureDP",
    "Profile",
    "PureDP",
    "calibrate_noise",
    "calibrate_releases",
    "delta",
    "epsilon",
    "event_from_json",
    "joint_multiplier",
    "privacy_profile",
    "rdp_curve",
    "register_event",
]

_HOMES = {
    "budget": ("Accounting", "Budget"),
    "calibration": ("calibrate_noise", "calibrate_releases"),
    "composition": ("delta", "epsilon"),
    "events": (
        "Event",
        "Gaussian",
        "PoissonGaussian",
        "PoissonPureDP",
        "PureDP",
        "event_from_json",
        "joint_multiplier",
        "register_event",
    ),
    "profiles": ("Profile", "privacy_profile"),
    "rdp": ("rdp_curve",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Whether there are compiled kernels: switched on, compiled, and right on a few small cases."""

import functools
import os
import warnings

from discreet.data.folders import cache_folder
from discreet.errors import UserError
from discreet.gradients.native.building import BuildError, built
from discreet.gradients.native.checking import WrongResult, check
from discreet.gradients.native.kernels import Kernels

VARIABLE = "DISCREET_KERNELS"


def kernels() -> Kernels | None:
    """The compiled kernels, or None where they are switched off or cannot be had.

    The first call in a process may compile them. Where that fails, a warning says so once, and everything goes on
    without them: slower, with the same results up to rounding.
    """
    setting = os.environ.get(VARIABLE, "on")
    if setting not in ("on", "off"):
        raise UserError(f"{VARIABLE} must be on or off, got {setting!r}")
    return _loaded() if setting == "on" else None


@functools.cache
def _loaded() -> Kernels | None:
    try:
        found = Kernels(built(cache_folder() / "kernels"))
        check(found)
    except (BuildError, WrongResult, OSError, AttributeError) as error:
        warnings.warn(
            f"no compiled kernels, so some layers are slower: {error} ({VARIABLE}=off silences this)",
            stacklevel=3,
        )
        return None
    return found

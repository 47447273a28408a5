"""Which of several exact ways a layer takes: timed on made-up records, then remembered."""

import time
from collections.abc import Callable, Mapping

from torch import Tensor

from discreet.gradients.contributions import Contribution
from discreet.gradients.native import Kernels

Way = Callable[[], Contribution]

# The end of the name of a way that keeps the records' gradients; without it, the name of one that does not.
KEPT = ", kept"
# The beginning of the name of a way by the compiled kernels.
COMPILED = "compiled"
NO_KERNELS = "none"
_ROUNDS = 2
_HOPELESS = 3.0


class Choices:
    """The ways chosen so far by what they were chosen for; both are text, so they can be saved as JSON.

    Timing happens only while `timing` is set, which the engine does on made-up records. At any other time
    what has been chosen is taken, or else the first way, so that what is computed is a function of the
    choices.

    Args:
        chosen: What was chosen before.
        kernels: The compiled kernels, if there are any: further ways to choose from.
    """

    def __init__(self, chosen: Mapping[str, str] | None = None, kernels: Kernels | None = None) -> None:
        self.chosen: dict[str, str] = dict(chosen or {})
        self.timing = False
        self._kernels = kernels

    def kernels_for(self, tensor: Tensor) -> Kernels | None:
        """The compiled kernels, if there are any and they take such tensors."""
        return self._kernels if self._kernels is not None and self._kernels.take(tensor) else None

    @property
    def kernels(self) -> str:
        """The key of the compiled kernels on which results depend; `NO_KERNELS` if they depend on none."""
        used = any(name.startswith(COMPILED) for name in self.chosen.values())
        return self._kernels.key if self._kernels is not None and used else NO_KERNELS

    def take(self, key: str, ways: Mapping[str, Way], shape: tuple[int, ...], like: Tensor) -> Contribution:
        """A contribution to a parameter of this shape, by the way for this key; `like` is [B, ...].

        A way that keeps the records' gradients may be missing for a batch that is larger than what was timed; the
        fastest of those that do not then takes its place.
        """
        name = self.chosen.get(key, "")
        if name not in ways:
            name = self.chosen.get(_larger(key), "")
        if name not in ways:
            name = next(iter(ways))
            if self.timing and len(ways) > 1:
                seconds = _seconds(ways, like.new_ones(like.shape[0]), like.new_zeros(shape))
                name = self.chosen[key] = min(seconds, key=lambda way: seconds[way])
                if name.endswith(KEPT):
                    rest = [way for way in ways if not way.endswith(KEPT)]
                    self.chosen[_larger(key)] = min(rest, key=lambda way: seconds[way])
        return ways[name]()


def _larger(key: str) -> str:
    return f"larger {key}"


def _seconds(ways: Mapping[str, Way], weights: Tensor, out: Tensor) -> dict[str, float]:
    """The shortest time of each way."""

    def run(way: Way) -> float:
        start = time.perf_counter()
        contribution = way()
        contribution.squared()
        contribution.add_weighted(weights, out)
        return time.perf_counter() - start

    # The first run of each finds its memory cold; only what is hopeless even so is left out.
    best = {name: run(way) for name, way in ways.items()}
    for _ in range(_ROUNDS):
        limit = _HOPELESS * min(best.values())
        for name, way in ways.items():
            if best[name] <= limit:
                best[name] = min(best[name], run(way))
    return best

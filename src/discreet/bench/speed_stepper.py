"""What every way to take a training step has in common."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

CLIP_NORM = 1.0
# Small enough that the weights, and so the work, stay what they are over all measured steps.
LEARNING_RATE = 1e-9


class Stepper(ABC):
    """One way to train one model.

    Args:
        model: Its own copy of the network.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    @abstractmethod
    def step(self, inputs: Tensor, targets: Tensor) -> None:
        """One step: gradients, clipping and noise if it is private, update."""

    def clipped_sum(self, inputs: Tensor, targets: Tensor) -> Tensor | None:
        """The flat clipped sum without noise, in the original model's order; None if it is not private."""
        return None

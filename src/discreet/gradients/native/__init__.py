"""Optional compiled kernels for what a processor does slowly through PyTorch; the same results without them."""

from discreet.gradients.native.kernels import Kernels
from discreet.gradients.native.loading import VARIABLE, kernels

__all__ = ["VARIABLE", "Kernels", "kernels"]

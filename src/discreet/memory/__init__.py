"""What past releases contribute to the next one: kernels, filters, a spectral memory. All is post-processing."""

from discreet.memory.filtering import FilteringMemory
from discreet.memory.kernels import KERNELS, Kernel, kernel
from discreet.memory.memory import Memory
from discreet.memory.spectral import SpectralMemory

__all__ = ["KERNELS", "FilteringMemory", "Kernel", "Memory", "SpectralMemory", "kernel"]

"""Accepting or rejecting a candidate by a noisy test, and choosing among those that were accepted."""

from discreet.gates.annealing import AnnealedLossTest, AnnealedSumTest
from discreet.gates.bias_test import BiasTest
from discreet.gates.buffer import Buffer
from discreet.gates.gate import Gate, Trial, Verdict
from discreet.gates.loss_test import LossTest

__all__ = [
    "AnnealedLossTest",
    "AnnealedSumTest",
    "BiasTest",
    "Buffer",
    "Gate",
    "LossTest",
    "Trial",
    "Verdict",
]

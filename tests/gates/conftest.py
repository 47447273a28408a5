from types import SimpleNamespace

import pytest
import torch
from scipy import stats

from discreet.gates.gate import Candidate
from discreet.gradients.private import Private
from discreet.noise.key import RunKey
from discreet.schedules import UNMOVED


class StagedTrial:
    """A trial whose losses and norms are given: what a gate makes of them is its own."""

    def __init__(self, number=0, *, before=0.0, after=0.0, norms=(), reference=None, phase=UNMOVED, key=None):
        self.number, self.phase, self.reference, self.rejected_in_a_row = number, phase, reference, 0
        self.report = SimpleNamespace(
            norms=Private(torch.as_tensor(norms, dtype=torch.float32).reshape(-1, 1))
        )
        self._losses = [before, after]
        self._key = RunKey.from_seed(1) if key is None else key
        self.batches, self.proposals = [], 0

    def stream(self, purpose):
        return self._key.stream(purpose, self.number)

    def losses(self, indices):
        self.batches.append(indices)
        loss = self._losses[self.proposals]
        each = torch.full((len(indices),), float(loss)) if isinstance(loss, int | float) else loss
        return Private(each)

    def propose(self):
        self.proposals += 1


@pytest.fixture
def staged():
    return StagedTrial


@pytest.fixture
def as_often_as():
    """Whether a gate accepts staged trials as often as a probability says: a chi-square test at level 1e-4."""

    def compare(gate, probability, trials=1500, **staging):
        passed = sum(gate.judge(StagedTrial(number, **staging)).accepted for number in range(trials))
        expected = [trials * probability, trials * (1.0 - probability)]
        return stats.chisquare([passed, trials - passed], expected).pvalue > 1e-4

    return compare


@pytest.fixture
def candidate():
    return Candidate(sample_rate=0.1, noise_multiplier=2.0, number=0, phase=UNMOVED)

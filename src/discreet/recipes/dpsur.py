"""DPSUR: keep an update only if a noisy test says that the loss went down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.gates.loss_test import LossTest
from discreet.recipes.presets import IMAGES, TEXTS, Presets, across
from discreet.recipes.selective import LossSelective
from discreet.sampling import PoissonSampler

_IMAGES = {**IMAGES, "gate_batch_size": 256, "gate_clip": 0.001, "gate_threshold": -1.0}


@dataclass(frozen=True, kw_only=True)
class DPSUR(LossSelective):
    """Differentially private selective update and release."""

    name: ClassVar[str] = "dpsur"
    summary: ClassVar[str] = "updates are kept only if a noisy test says that the loss went down"
    paper: ClassVar[str] = "Fu et al., DPSUR: Selective Update and Release, PVLDB 17(6), 2024"
    presets: ClassVar[Presets] = {
        # Table 1 of the paper for sigma_v, the authors' run.sh for the rest, epsilon 1 to 4.
        "mnist": across(
            {**_IMAGES, "expected_batch_size": 1024, "learning_rate": 2.0},
            noise_multiplier=(2.0, 1.5, 1.35, 1.35),
            gate_noise_multiplier=(1.3, 1.0, 0.9, 0.8),
        ),
        "fashion-mnist": across(
            {**_IMAGES, "expected_batch_size": 2048, "learning_rate": 4.0},
            noise_multiplier=(4.0, 2.15, 2.15, 2.15),
            gate_noise_multiplier=(1.3, 1.3, 0.8, 0.8),
        ),
        "cifar-10": across(
            {**_IMAGES, "expected_batch_size": 8192, "learning_rate": 4.0},
            noise_multiplier=(11.0, 9.0, 5.67, 5.67),
            gate_noise_multiplier=(1.3, 1.3, 1.1, 1.1),
        ),
        "imdb": across(
            {**TEXTS, "gate_batch_size": 128, "expected_batch_size": 1024},
            noise_multiplier=(2.0, 1.8, 1.35, 1.23),
            gate_noise_multiplier=(1.3, 1.2, 1.0, 0.9),
        ),
    }

    def gate(self, sampler: PoissonSampler) -> LossTest:
        """The loss test."""
        return LossTest(
            change=self.loss_change(sampler),
            noise_multiplier=self.gate_noise_multiplier,
            threshold=self.gate_threshold,
        )

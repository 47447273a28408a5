"""DPSGD-BR: gather several updates that pass a noisy test, take one of them, and let parameters decay with progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from discreet.gates.buffer import Buffer
from discreet.gates.loss_test import LossTest
from discreet.gates.progress import NoisyAccuracy, PublicAccuracy, ReleasedScores
from discreet.gates.selecting import Selecting
from discreet.recipes.first_order import require_one_of, require_positive
from discreet.recipes.presets import IMAGES, TEXTS, Presets, across
from discreet.recipes.selective import LossSelective
from discreet.sampling import PoissonSampler
from discreet.schedules import PhasedDecay

if TYPE_CHECKING:
    from discreet.gates.progress import Progress

_IMAGES = {**IMAGES, "gate_batch_size": 256, "gate_clip": 0.001, "gate_threshold": -1.5}
_LITERAL = "equation-12"


@dataclass(frozen=True, kw_only=True)
class DPSGDBR(LossSelective):
    """Differentially private SGD with buffered rejection and phased decay.

    Args:
        buffer_size: n, how many accepted candidates are gathered before one of them becomes the update; 1 takes each.
        tie: theta, in units of C_v; of the two best scores that differ by no more, a fair coin decides.
        patience: T_max; after so many rejections in a row one candidate is enough until the next update. None for
            never, as `hidden` accounting needs it.
        takes: "better" takes the candidate whose noisy loss went down more; "worse" is equation 16 as it is printed.
        gate_noise: "sensitivity" is 2 C_v sigma_v; "equation-12" is sigma_v as it is printed, without the bound.
        charge_all: under `hidden` accounting, charge every accepted candidate with its score instead of the chosen one.
        progress: what the decay follows: "scores" that were released, a noisy "accuracy" that is charged, the
            accuracy on "public" records, or "none" for no decay at all.
        fast_decay: alpha_F, on sigma, sigma_v and eta after an update with progress above p.
        slow_decay: alpha_S, on sigma, beta and eta after any other.
        decay_trigger: p; percentage points of accuracy, or for "scores" the share of the best possible improvement.
        decay_floor: the smallest factor that decay leads to; the paper has none.
        decay_until: epsilon_B; once so much is spent nothing decays any more. The whole budget, when left out.
        progress_batch_size: mean size of the batch that a noisy accuracy is taken on.
        progress_noise_multiplier: noise of that accuracy, over the one hit by which a record changes it.
    """

    name: ClassVar[str] = "dpsgd-br"
    summary: ClassVar[str] = (
        "of several updates that pass a noisy test the best is kept; parameters decay in phases"
    )
    paper: ClassVar[str] = "DPSGD-BR: buffered rejection and phased decay, extending DPSUR"
    presets: ClassVar[Presets] = {
        # Table 4 of the paper, its initial parameters at epsilon 1. It prints none for 2 to 4: there the noise is
        # DPSUR's times the ratio that the two have at epsilon 1. B_v and the decays are not printed either.
        "mnist": across(
            {**_IMAGES, "expected_batch_size": 1024, "learning_rate": 2.75, "gate_noise_multiplier": 1.37},
            noise_multiplier=(3.0, 2.25, 2.03, 2.03),
        ),
        "fashion-mnist": across(
            {**_IMAGES, "expected_batch_size": 2048, "learning_rate": 6.0, "gate_noise_multiplier": 1.3},
            noise_multiplier=(6.0, 3.23, 3.23, 3.23),
        ),
        "cifar-10": across(
            {**_IMAGES, "expected_batch_size": 8192, "learning_rate": 4.8, "gate_noise_multiplier": 1.4},
            noise_multiplier=(14.0, 11.45, 7.22, 7.22),
        ),
        "imdb": across(
            {
                **TEXTS,
                "gate_batch_size": 128,
                "gate_noise_multiplier": 1.37,
                "gate_threshold": -1.5,
                "expected_batch_size": 1024,
                "learning_rate": 0.03,
            },
            noise_multiplier=(2.3, 2.07, 1.55, 1.41),
        ),
    }

    gate_threshold: float = -1.5
    buffer_size: int = 2
    tie: float = 0.1
    patience: int | None = 5
    takes: str = "better"
    gate_noise: str = "sensitivity"
    charge_all: bool = False
    progress: str = "scores"
    fast_decay: float = 0.999
    slow_decay: float = 0.9999
    decay_trigger: float = 0.5
    decay_floor: float = 0.5
    decay_until: float | None = None
    progress_batch_size: int = 1024
    progress_noise_multiplier: float = 50.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("decay_until", "progress_batch_size", "progress_noise_multiplier"):
            require_positive(name, getattr(self, name))
        require_one_of("gate_noise", self.gate_noise, ("sensitivity", _LITERAL))
        require_one_of("progress", self.progress, ("scores", "accuracy", "public", "none"))
        _ = self._buffer, self._decay

    def gate(self, sampler: PoissonSampler) -> LossTest:
        """The loss test that candidates have to pass to be gathered."""
        return LossTest(
            change=self.loss_change(sampler),
            noise_multiplier=self.gate_noise_multiplier,
            threshold=self.gate_threshold,
            unscaled=self.gate_noise == _LITERAL,
        )

    def selecting(self, sampler: PoissonSampler) -> Selecting:
        """Gate, buffer and decay."""
        return Selecting(
            gate=self.gate(sampler),
            buffer=self._buffer if self.buffer_size > 1 else None,
            decay=self._decay if self.progress != "none" else None,
            progress=self._progress(sampler),
            until=self.decay_until,
        )

    @property
    def _buffer(self) -> Buffer:
        return Buffer(
            size=self.buffer_size,
            tie=self.tie,
            patience=self.patience,
            takes=self.takes,
            charge_all=self.charge_all,
        )

    @property
    def _decay(self) -> PhasedDecay:
        return PhasedDecay(
            fast=self.fast_decay, slow=self.slow_decay, trigger=self.decay_trigger, floor=self.decay_floor
        )

    def _progress(self, sampler: PoissonSampler) -> Progress | None:
        if self.progress == "accuracy":
            size = min(self.progress_batch_size, sampler.examples)
            return NoisyAccuracy(
                sampler=PoissonSampler(examples=sampler.examples, rate=size / sampler.examples),
                noise_multiplier=self.progress_noise_multiplier,
            )
        if self.progress == "public":
            return PublicAccuracy()
        return ReleasedScores() if self.progress == "scores" else None

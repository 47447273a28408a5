"""SA-DP-SGD: simulated annealing; an update that looks worse is kept too, by a coin that gets colder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.errors import UserError
from discreet.gates.annealing import AnnealedLossTest, AnnealedSumTest, Cooling
from discreet.gates.scores import LossChangeSum
from discreet.gates.selecting import Selecting
from discreet.recipes.first_order import require_one_of
from discreet.recipes.presets import IMAGES, Presets, across
from discreet.recipes.selective import LossSelective
from discreet.sampling import PoissonSampler


@dataclass(frozen=True, kw_only=True)
class SADPSGD(LossSelective):
    """Differentially private SGD with simulated annealing.

    Args:
        scores: "per-record": each record's loss change is clipped to C_v, and every candidate and score is charged as
            if it were released. "total": the change of the mean loss is clipped, and only what is released is charged.
        coldness: the inverse temperature c at the first trial, per unit of C_v.
        cooling: by how much it grows after every `cooling_every` trials.
        cooling_every: how many trials share a temperature.
        coldest: where it stops.
        patience: after so many rejections in a row the next candidate is kept unseen; for "per-record" scores.
        gate_threshold: has no meaning here: a better score always passes. It stays at 0.
    """

    name: ClassVar[str] = "sa-dp-sgd"
    summary: ClassVar[str] = (
        "updates that look worse are kept by a coin that gets colder: simulated annealing"
    )
    paper: ClassVar[str] = (
        "Fu, Chen and Ling, SA-DPSGD, arXiv 2211.07218 (text not at hand; built from its abstract)"
    )
    presets: ClassVar[Presets] = {
        # The paper's settings are not known; DPSUR's batches, noise and rates, by the same first author.
        "mnist": across(
            {**IMAGES, "expected_batch_size": 1024, "learning_rate": 2.0},
            noise_multiplier=(2.0, 1.5, 1.35, 1.35),
        ),
        "fashion-mnist": across(
            {**IMAGES, "expected_batch_size": 2048, "learning_rate": 4.0},
            noise_multiplier=(4.0, 2.15, 2.15, 2.15),
        ),
        "cifar-10": across(
            {**IMAGES, "expected_batch_size": 8192, "learning_rate": 4.0},
            noise_multiplier=(11.0, 9.0, 5.67, 5.67),
        ),
    }

    gate_threshold: float = 0.0
    gate_clip: float = 0.1
    scores: str = "per-record"
    coldness: float = 10.0
    cooling: float = 10.0
    cooling_every: int = 100
    coldest: float = 200.0
    patience: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("scores", self.scores, ("per-record", "total"))
        if self.gate_threshold != 0.0:
            raise UserError(
                f"gate_threshold is {self.gate_threshold}; annealing has no threshold, leave it out"
            )
        if self.claimed_epsilon is not None:
            raise UserError(
                "claimed_epsilon has no meaning for sa-dp-sgd: no formula of its paper is at hand"
            )
        if self.patience is not None and self.scores == "total":
            raise UserError('patience needs scores "per-record", which pay for every candidate')
        _ = self._cooling

    @property
    def _cooling(self) -> Cooling:
        return Cooling(start=self.coldness, step=self.cooling, most=self.coldest, every=self.cooling_every)

    def gate(self, sampler: PoissonSampler) -> AnnealedLossTest | AnnealedSumTest:
        """The annealed test."""
        if self.scores == "total":
            return AnnealedLossTest(
                change=self.loss_change(sampler),
                noise_multiplier=self.gate_noise_multiplier,
                cooling=self._cooling,
            )
        return AnnealedSumTest(
            change=LossChangeSum(sampler=self.gate_sampler(sampler), bound=self.gate_clip),
            noise_multiplier=self.gate_noise_multiplier,
            cooling=self._cooling,
            patience=self.patience,
        )

    def selecting(self, sampler: PoissonSampler) -> Selecting:
        """The test; its paper has no formula that could be printed as claimed."""
        return Selecting(gate=self.gate(sampler), claims=False)

"""What the papers' published settings really cost, under each accounting, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from discreet.accounting.composition import epsilon
from discreet.accounting.events import Event
from discreet.accounting.rounding import rounded_up
from discreet.accounting.selective.claimed import claimed_releases
from discreet.accounting.selective.events import BufferedRelease, GatedTrial, ScoredTrial

DELTA = 1e-5


@dataclass(frozen=True, kw_only=True)
class PublishedSetting:
    """One row of a paper: a data set, the epsilon that is claimed, and the parameters that it was reached with."""

    method: str
    dataset: str
    examples: int
    claimed_epsilon: float
    batch: int
    noise_multiplier: float
    gate_batch: int
    gate_multiplier: float
    gate_threshold: float
    candidates: int = 1

    @property
    def trial(self) -> GatedTrial:
        """One trial of the method."""
        kind = ScoredTrial if self.candidates > 1 else GatedTrial
        return kind(
            sample_rate=self.batch / self.examples,
            noise_multiplier=self.noise_multiplier,
            gate_rate=self.gate_batch / self.examples,
            gate_multiplier=self.gate_multiplier,
            gate_threshold=self.gate_threshold,
        )

    @property
    def release(self) -> Event:
        """What one update of the model releases, for `hidden` accounting."""
        if self.candidates == 1:
            return self.trial
        trial = self.trial
        return BufferedRelease(
            sample_rate=trial.sample_rate,
            noise_multiplier=trial.noise_multiplier,
            gate_rate=trial.gate_rate,
            gate_multiplier=trial.gate_multiplier,
            gate_threshold=trial.gate_threshold,
            candidates=self.candidates,
        )


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a published setting at the number of updates that its paper's formula allows.

    Attributes:
        updates: T, the number of accepted updates at which the claimed epsilon is reached.
        visible: Certified, every trial charged, when candidates pass at the best, the middle and the worst rate that
            the gate allows (the number of trials is T divided by the rate).
        hidden: Certified, if number and timing of the trials stay secret.
    """

    setting: PublishedSetting
    updates: int
    visible: tuple[float, float, float]
    hidden: float


def _dpsur() -> Iterator[PublishedSetting]:
    """DPSUR (arXiv 2311.14056), table 1 and the released run.sh; epsilon 1 to 4."""
    rows = {
        "MNIST": (60000, 1024, (2.0, 1.5, 1.35, 1.35), 256, (1.3, 1.0, 0.9, 0.8)),
        "FMNIST": (60000, 2048, (4.0, 2.15, 2.15, 2.15), 256, (1.3, 1.3, 0.8, 0.8)),
        "CIFAR-10": (50000, 8192, (11.0, 9.0, 5.67, 5.67), 256, (1.3, 1.3, 1.1, 1.1)),
        "IMDb": (25000, 1024, (2.0, 1.8, 1.35, 1.23), 128, (1.3, 1.2, 1.0, 0.9)),
    }
    for dataset, (examples, batch, noises, gate_batch, gate_noises) in rows.items():
        for claimed, (noise, gate_noise) in enumerate(zip(noises, gate_noises, strict=True), start=1):
            yield PublishedSetting(
                method="DPSUR",
                dataset=dataset,
                examples=examples,
                claimed_epsilon=float(claimed),
                batch=batch,
                noise_multiplier=noise,
                gate_batch=gate_batch,
                gate_multiplier=gate_noise,
                gate_threshold=-1.0,
            )


def _dpsgd_br() -> Iterator[PublishedSetting]:
    """DPSGD-BR, table 4 (initial parameters at epsilon 1), without decay.

    The paper does not print the size of its validation batch; DPSUR's is taken, whose code it builds on.
    """
    rows = {
        "MNIST": (60000, 1024, 3.0, 256, 1.37),
        "FMNIST": (60000, 2048, 6.0, 256, 1.3),
        "CIFAR-10": (50000, 8192, 14.0, 256, 1.4),
        "IMDb": (25000, 1024, 2.3, 128, 1.37),
    }
    for dataset, (examples, batch, noise, gate_batch, gate_noise) in rows.items():
        yield PublishedSetting(
            method="DPSGD-BR",
            dataset=dataset,
            examples=examples,
            claimed_epsilon=1.0,
            batch=batch,
            noise_multiplier=noise,
            gate_batch=gate_batch,
            gate_multiplier=gate_noise,
            gate_threshold=-1.5,
            candidates=2,
        )


def published_settings() -> tuple[PublishedSetting, ...]:
    """All settings that DPSUR and DPSGD-BR publish."""
    return (*_dpsur(), *_dpsgd_br())


def cost(setting: PublishedSetting, delta: float = DELTA) -> Cost:
    """What a setting costs. Under `visible` a chosen candidate takes `candidates` accepted trials."""
    trial, acceptance = setting.trial, setting.trial.acceptance
    updates = claimed_releases(trial, setting.claimed_epsilon, delta)
    rates = (acceptance.high, (acceptance.high + acceptance.low) / 2.0, acceptance.low)
    trials = [max(1, round(updates * setting.candidates / rate)) for rate in rates]
    best, middle, worst = (epsilon([(trial, count)], delta, accounting="visible") for count in trials)
    hidden = epsilon([(setting.release, updates)], delta, accounting="hidden")
    return Cost(setting=setting, updates=updates, visible=(best, middle, worst), hidden=hidden)


def cost_table(costs: Iterable[Cost] | None = None) -> str:
    """The table "what the papers' settings really cost", in Markdown."""
    chosen = [cost(setting) for setting in published_settings()] if costs is None else list(costs)
    lines = [
        "| method | data | updates | claimed (no guarantee) | visible, best / middle / worst acceptance | hidden |",
        "|---|---|---|---|---|---|",
    ]
    for each in chosen:
        visible = " / ".join(rounded_up(value, 2) for value in each.visible)
        lines.append(
            f"| {each.setting.method} | {each.setting.dataset} | {each.updates:,} | "
            f"{each.setting.claimed_epsilon:.2f} | {visible} | {rounded_up(each.hidden, 2)} |"
        )
    return "\n".join(lines)

"""Questions that a person asks before a run: what would it cost, how much noise, how many releases."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.accounting.budget import Budget
from discreet.accounting.calibration import calibrate_noise, calibrate_releases
from discreet.accounting.composition import epsilon
from discreet.accounting.events import Event, PoissonGaussian
from discreet.accounting.rounding import rounded_up
from discreet.errors import UserError

_MOST_RELEASES = 10**7


@dataclass(frozen=True, kw_only=True)
class Account:
    """What some releases cost, under each accounting.

    Attributes:
        releases: How many releases.
        event: The event of each.
        delta: The delta at which epsilon holds.
        visible: Certified, against an adversary who sees every trial.
        hidden: Certified, against an adversary who sees accepted models only.
        claimed: What the method's paper would claim; not a guarantee. None where there is no such formula.
    """

    releases: int
    event: Event
    delta: float
    visible: float
    hidden: float
    claimed: float | None = None

    def table(self) -> str:
        """The account as a table in plain text."""
        parameters = {name: value for name, value in self.event.to_json().items() if name != "kind"}
        rows = [("event", self.event.kind)]
        rows += [
            (name.replace("_", " "), f"{value:.6g}")
            for name, value in parameters.items()
            if _is_number(value)
        ]
        rows += [("releases", f"{self.releases:,}"), ("delta", f"{self.delta:.3g}")]
        rows += [("epsilon, visible", rounded_up(self.visible)), ("epsilon, hidden", rounded_up(self.hidden))]
        if self.claimed is not None:
            rows.append(("epsilon, claimed", f"{rounded_up(self.claimed)}  (not a guarantee)"))
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def account_for(event: Event, releases: int, delta: float, *, claimed: float | None = None) -> Account:
    """The certified cost of `releases` equal releases."""
    visible, hidden = (
        epsilon([(event, releases)], delta, accounting=accounting) for accounting in ("visible", "hidden")
    )
    return Account(
        releases=releases, event=event, delta=delta, visible=visible, hidden=hidden, claimed=claimed
    )


def rate(
    *, sample_rate: float | None = None, batch: float | None = None, examples: int | None = None
) -> float:
    """The sampling rate, given directly or as the expected batch size over the number of examples."""
    if sample_rate is not None and batch is None and examples is None:
        return sample_rate
    if sample_rate is not None or batch is None or examples is None:
        raise UserError("give either the sample rate, or the expected batch size and the number of examples")
    if not 0 < batch <= examples:
        raise UserError(
            f"the expected batch size must be between 0 and the {examples} examples, not {batch:g}"
        )
    return batch / examples


def epsilon_for(*, sample_rate: float, noise_multiplier: float, releases: int, delta: float) -> Account:
    """What `releases` of DP-SGD at this rate and noise cost."""
    return account_for(
        PoissonGaussian(sample_rate=sample_rate, noise_multiplier=noise_multiplier), releases, delta
    )


def noise_for(*, sample_rate: float, releases: int, budget: Budget) -> Account:
    """The smallest noise multiplier at which that many releases of DP-SGD keep the budget, and its cost."""
    multiplier = calibrate_noise(
        lambda noise: [(PoissonGaussian(sample_rate=sample_rate, noise_multiplier=noise), releases)], budget
    )
    return epsilon_for(
        sample_rate=sample_rate, noise_multiplier=multiplier, releases=releases, delta=budget.delta
    )


def releases_for(*, sample_rate: float, noise_multiplier: float, budget: Budget) -> Account:
    """The most releases of DP-SGD that keep the budget, at most ten million, and their cost."""
    event = PoissonGaussian(sample_rate=sample_rate, noise_multiplier=noise_multiplier)
    return account_for(event, calibrate_releases(lambda _: event, budget, limit=_MOST_RELEASES), budget.delta)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)

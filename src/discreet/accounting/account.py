"""Questions that a person asks before a run: what would it cost, how much noise, how many releases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from discreet.accounting.budget import Accounting, Budget
from discreet.accounting.calibration import calibrate_noise, calibrate_releases
from discreet.accounting.composition import epsilon
from discreet.accounting.events import Event, checked_number
from discreet.accounting.mechanisms import Mechanism
from discreet.accounting.rounding import rounded_up
from discreet.accounting.selective.claimed import claimed_epsilon
from discreet.errors import UserError

_MOST_RELEASES = 10**7


@dataclass(frozen=True, kw_only=True)
class Account:
    """What a mechanism costs under each accounting. Only `visible` and `hidden` are guarantees.

    Attributes:
        mechanism: what is run.
        releases: how many updates are released.
        delta: where the epsilons hold.
        visible: pairs of a number of trials and the certified epsilon when every trial is charged.
        hidden: the certified epsilon if number and timing of the trials stay secret.
        claimed: what the paper's own formula says; None where there is none.
    """

    mechanism: Mechanism
    releases: int
    delta: float
    visible: tuple[tuple[int, float], ...]
    hidden: float
    claimed: float | None

    def table(self) -> str:
        """The account as a table in plain text."""
        rows = [("mechanism", self.mechanism.name)]
        rows += [(name.replace("_", " "), _written(value)) for name, value in self._parameters().items()]
        rows += [("releases", f"{self.releases:,}"), ("delta", f"{self.delta:.3g}")]
        kinds = (" (best acceptance)", " (middle)", " (worst)") if len(self.visible) == 3 else ("",)
        for kind, (trials, spent) in zip(kinds, self.visible, strict=True):
            of = f"  every one of {trials:,} trials charged{kind}" if self.mechanism.selects else ""
            rows.append(("epsilon, visible", rounded_up(spent) + of))
        secret = "  if number and timing of trials stay secret" if self.mechanism.selects else ""
        rows.append(("epsilon, hidden", rounded_up(self.hidden) + secret))
        if self.claimed is not None:
            rows.append(
                ("epsilon, claimed", f"{rounded_up(self.claimed)}  by the paper's formula; not a guarantee")
            )
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)

    def to_json(self) -> dict[str, object]:
        """The account as plain values."""
        return {
            "mechanism": self.mechanism.name,
            "trial": self.mechanism.trial.to_json(),
            "release": self.mechanism.release.to_json(),
            "releases": self.releases,
            "delta": self.delta,
            "visible": [{"trials": trials, "epsilon": spent} for trials, spent in self.visible],
            "hidden": self.hidden,
            "claimed_no_guarantee": self.claimed,
        }

    def _parameters(self) -> dict[str, object]:
        return {name: value for name, value in self.mechanism.release.to_json().items() if name != "kind"}


def account(mechanism: Mechanism, *, releases: int, delta: float, trials: int | None = None) -> Account:
    """What so many released updates cost under each accounting.

    Args:
        mechanism: what is run.
        releases: how many updates are released.
        delta: where the epsilons hold.
        trials: how many trials that took. Left out, the best, the middle and the worst case of the gate are shown.
    """
    checked_number("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True)
    if releases < 1:
        raise UserError(f"releases is {releases}; it is a whole number of at least 1")
    least = releases * mechanism.accepted_per_release
    if trials is not None and trials < least:
        raise UserError(f"trials is {trials}; {releases} releases take at least {least}")
    if not mechanism.selects:
        counts: tuple[int, ...] = (releases,)
    else:
        counts = (trials,) if trials is not None else mechanism.trials(releases)
    return Account(
        mechanism=mechanism,
        releases=releases,
        delta=delta,
        visible=tuple((n, epsilon([(mechanism.trial, n)], delta, accounting="visible")) for n in counts),
        hidden=epsilon([(mechanism.release, releases)], delta, accounting="hidden"),
        claimed=None if mechanism.claims is None else claimed_epsilon([(mechanism.claims, releases)], delta),
    )


def noise_for(
    mechanism_with: Callable[[float], Mechanism], *, count: int, budget: Budget, accounting: Accounting
) -> Mechanism:
    """The mechanism with the smallest noise multiplier found that keeps the budget.

    Args:
        mechanism_with: the mechanism as a function of the noise multiplier.
        count: how many trials (`visible`) or releases (`hidden`).
        budget: what may be spent.
        accounting: the one that is held to the budget.
    """

    def charges(noise: float) -> list[tuple[Event, int]]:
        return [(_charged(mechanism_with(noise), accounting), count)]

    return mechanism_with(calibrate_noise(charges, budget, accounting=accounting))


def most_within(mechanism: Mechanism, *, budget: Budget, accounting: Accounting) -> int:
    """The most trials (`visible`) or releases (`hidden`) that keep the budget, at most ten million."""
    event = _charged(mechanism, accounting)
    return calibrate_releases(lambda _: event, budget, limit=_MOST_RELEASES, accounting=accounting)


def rate(
    *, sample_rate: float | None = None, batch: float | None = None, examples: int | None = None
) -> float:
    """The sampling rate, given directly or as the expected batch size over the number of examples."""
    if sample_rate is not None and batch is None:
        return sample_rate
    if sample_rate is not None or batch is None or examples is None:
        raise UserError("give either the sample rate, or the expected batch size and the number of examples")
    if not 0 < batch <= examples:
        raise UserError(
            f"the expected batch size must be between 0 and the {examples} examples, not {batch:g}"
        )
    return batch / examples


def _charged(mechanism: Mechanism, accounting: Accounting) -> Event:
    return mechanism.trial if accounting is Accounting.VISIBLE else mechanism.release


def _written(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)

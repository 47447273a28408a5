"""`discreet account`: what settings cost, or which settings a budget allows."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable

from discreet.accounting import Accounting, Budget, mechanisms
from discreet.accounting import account as accounting_of
from discreet.accounting.account import Account, most_within, noise_for, rate
from discreet.accounting.mechanisms import Mechanism
from discreet.errors import UserError

# For each mechanism its maker, and which of the options it takes besides sample rate and noise multiplier.
_GATE = ("gate_rate", "gate_multiplier", "gate_threshold")
_MAKERS: dict[str, tuple[Callable[..., Mechanism], tuple[str, ...]]] = {
    "dp-sgd": (mechanisms.dp_sgd, ()),
    "same-batch": (mechanisms.same_batch, ("also",)),
    "memory": (mechanisms.memory, ("fresh_weight", "groups")),
    "noisy-selection": (mechanisms.noisy_selection, ("pure_epsilon",)),
    "dpsur": (mechanisms.gated, _GATE),
    "sa-dp-sgd": (mechanisms.annealed, ("gate_rate", "gate_multiplier", "coldness")),
    "dpsr-cg": (
        mechanisms.batch_gated,
        ("gate_multiplier", "gate_threshold", "gate_span", "one_sided", "private_reference"),
    ),
    "dpsgd-br": (mechanisms.buffered, (*_GATE, "candidates", "tie", "charge_all")),
}
_ALL_OPTIONS = {option for _, options in _MAKERS.values() for option in options}
_REQUIRED = {"gate_rate", "gate_multiplier", "coldness", "fresh_weight", "pure_epsilon", "also"}


def account(arguments: argparse.Namespace) -> int:
    """Answer with the accountings side by side."""
    try:
        if arguments.mechanism == "papers":
            return _papers()
        found = _answer(arguments)
    except (ValueError, OverflowError) as error:
        raise UserError(str(error)) from None
    print(json.dumps(found.to_json(), indent=2) if arguments.json else found.table())
    return 0


def _papers() -> int:
    from discreet.accounting.selective import cost_table

    print("What the papers' published settings really cost, at delta 1e-5:\n")
    print(cost_table())
    return 0


def _answer(arguments: argparse.Namespace) -> Account:
    sampled = rate(
        sample_rate=arguments.sample_rate, batch=arguments.expected_batch_size, examples=arguments.examples
    )
    make = _maker(arguments, sampled)
    noise, releases, trials = arguments.noise_multiplier, _releases(arguments, sampled), arguments.trials
    needs_noise = arguments.mechanism != "noisy-selection"
    if arguments.epsilon is None:
        if (noise is None and needs_noise) or releases is None:
            raise UserError("give noise multiplier and releases, or an epsilon to find one of the two for")
        return accounting_of(make(noise), releases=releases, trials=trials, delta=arguments.delta)
    budget = Budget(epsilon=arguments.epsilon, delta=arguments.delta)
    held = Accounting(arguments.accounting)
    if (noise is None and needs_noise) == (releases is None and trials is None):
        raise UserError(
            "with an epsilon, give either the noise multiplier or the releases; the other is found"
        )
    if noise is None and needs_noise:
        count = _charged_count(make(1.0), releases, trials, held)
        mechanism = noise_for(make, count=count, budget=budget, accounting=held)
    else:
        mechanism = make(noise)
        count = most_within(mechanism, budget=budget, accounting=held)
    if mechanism.selects and held is Accounting.VISIBLE:
        trials, releases = count, releases or mechanism.most_releases(count)
    return accounting_of(mechanism, releases=releases or count, trials=trials, delta=budget.delta)


def _charged_count(mechanism: Mechanism, releases: int | None, trials: int | None, held: Accounting) -> int:
    """How many events are charged: trials under `visible`, releases under `hidden`."""
    if held is Accounting.HIDDEN or not mechanism.selects:
        if releases is None:
            raise UserError("give the releases: under 'hidden' accounting they are what is charged")
        return releases
    if trials is None:
        raise UserError("give the trials: under 'visible' accounting every trial is charged")
    return trials


def _releases(arguments: argparse.Namespace, sampled: float) -> int | None:
    releases: int | None = arguments.releases
    if arguments.epochs is not None:
        if releases is not None:
            raise UserError("epochs and releases say the same thing; give one of them")
        if not (math.isfinite(arguments.epochs) and arguments.epochs > 0 and sampled > 0):
            raise UserError(
                f"{arguments.epochs:g} epochs at sample rate {sampled:g} are no number of releases; both are above 0"
            )
        releases = max(1, round(arguments.epochs / sampled))
    if releases is not None and releases < 1:
        raise UserError(f"releases is {releases}; it is a whole number of at least 1")
    return releases


def _maker(arguments: argparse.Namespace, sampled: float) -> Callable[[float], Mechanism]:
    """The mechanism as a function of its noise multiplier; options that it does not take are refused."""
    make, takes = _MAKERS[arguments.mechanism]
    given = {option: getattr(arguments, option) for option in _ALL_OPTIONS}
    if arguments.gate_batch_size is not None:
        if arguments.gate_rate is not None or arguments.examples is None:
            raise UserError("give either the gate rate, or the gate's batch size and the number of examples")
        given["gate_rate"] = rate(batch=arguments.gate_batch_size, examples=arguments.examples)
    settings = {option: value for option, value in given.items() if value is not None}
    for option in settings:
        if option not in takes:
            raise UserError(f"{arguments.mechanism} takes no --{option.replace('_', '-')}")
    for option in takes:
        if option in _REQUIRED and option not in settings:
            raise UserError(f"{arguments.mechanism} needs --{option.replace('_', '-')}")
    if arguments.mechanism == "noisy-selection":
        return lambda _: make(sample_rate=sampled, **settings)
    if arguments.mechanism == "same-batch":
        others = settings["also"]
        return lambda noise: make(sample_rate=sampled, noise_multipliers=[noise, *others])
    return lambda noise: make(sample_rate=sampled, noise_multiplier=noise, **settings)

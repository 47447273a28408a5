"""`discreet account`: what settings cost, or which settings a budget allows."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict

from discreet.accounting import Budget
from discreet.accounting.account import Account, epsilon_for, noise_for, rate, releases_for
from discreet.errors import UserError


def account(arguments: argparse.Namespace) -> int:
    """Answer with the accountings side by side."""
    try:
        found = _answer(arguments)
    except ValueError as error:
        raise UserError(str(error)) from None
    print(
        json.dumps({**asdict(found), "event": found.event.to_json()}, indent=2)
        if arguments.json
        else found.table()
    )
    return 0


def _answer(arguments: argparse.Namespace) -> Account:
    sampled = rate(
        sample_rate=arguments.sample_rate, batch=arguments.expected_batch_size, examples=arguments.examples
    )
    noise, releases = arguments.noise_multiplier, arguments.releases
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
    if arguments.epsilon is None:
        if noise is None or releases is None:
            raise UserError("give noise multiplier and releases, or an epsilon to find one of the two for")
        return epsilon_for(
            sample_rate=sampled, noise_multiplier=noise, releases=releases, delta=arguments.delta
        )
    budget = Budget(epsilon=arguments.epsilon, delta=arguments.delta)
    if (noise is None) == (releases is None):
        raise UserError(
            "with an epsilon, give either the noise multiplier or the releases; the other is found"
        )
    if noise is None:
        return noise_for(sample_rate=sampled, releases=releases, budget=budget)
    return releases_for(sample_rate=sampled, noise_multiplier=noise, budget=budget)

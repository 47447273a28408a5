"""`discreet bench`: measure on this machine what the documentation says of speed."""

from __future__ import annotations

import argparse

from discreet.errors import UserError


def speed(arguments: argparse.Namespace) -> int:
    """Private against plain steps, next to other libraries."""
    from discreet.bench import speed as bench

    return bench.main(
        arguments.settings, rounds=arguments.rounds, memory=not arguments.no_memory, out=arguments.output
    )


def noise(arguments: argparse.Namespace) -> int:
    """The noise's share of a release."""
    from discreet.bench import noise as bench

    print(bench.table(bench.run(turns=arguments.rounds)))
    return 0


def accounting(arguments: argparse.Namespace) -> int:
    """The accountant's time."""
    from discreet.bench import accounting as bench

    print(bench.table(bench.run(turns=arguments.rounds)))
    return 0


def recipes(arguments: argparse.Namespace) -> int:
    """What a release of each recipe costs, in releases of DP-SGD."""
    from discreet.bench import recipes as bench

    names = [setting.model for setting in bench.SETTINGS]
    chosen = [
        setting for setting in bench.SETTINGS if not arguments.models or setting.model in arguments.models
    ]
    if unknown := [name for name in arguments.models if name not in names]:
        raise UserError(f"model is {unknown[0]!r}; it can be {', '.join(dict.fromkeys(names))}")
    print(bench.table(bench.run(chosen, arguments.recipes, rounds=arguments.rounds)))
    return 0

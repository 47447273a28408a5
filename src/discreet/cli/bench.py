"""`discreet bench`: measure on this machine what the documentation says of speed."""

from __future__ import annotations

import argparse


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

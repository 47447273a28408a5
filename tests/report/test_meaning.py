import math

import pytest
from scipy.stats import norm

from discreet.report.material import Bound
from discreet.report.meaning import most_hits, most_right_guesses

MU = 1.3  # how far apart a Gaussian mechanism puts the data with and without the record


def pairs(mu: float) -> list[Bound]:
    """The exact guarantees of the Gaussian mechanism (Balle and Wang 2018) at many epsilons."""
    return [
        Bound(
            epsilon=eps,
            delta=norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * norm.cdf(-mu / 2 - eps / mu),
        )
        for eps in [number / 50 for number in range(1, 400)]
    ]


def best_attack(alarms: float) -> float:
    """What the best test of that mechanism reaches (Neyman and Pearson)."""
    return float(norm.cdf(norm.ppf(alarms) + MU))


def respects(bounds: list[Bound]) -> bool:
    return all(
        most_hits(alarms, bounds) >= best_attack(alarms) - 1e-12 for alarms in (0.001, 0.01, 0.1, 0.5, 0.9)
    )


def test_no_attack_recognises_more_than_the_bound() -> None:
    assert respects(pairs(MU))


def test_the_bound_of_too_strong_a_guarantee_is_broken_by_the_best_attack() -> None:
    assert not respects(pairs(MU * 0.95))


def test_with_many_pairs_the_bound_is_what_the_best_attack_reaches() -> None:
    assert most_hits(0.05, pairs(MU)) == pytest.approx(best_attack(0.05), abs=1e-3)


def test_the_share_of_right_guesses_bounds_the_best_guesser_and_is_tight() -> None:
    assert norm.cdf(MU / 2) <= most_right_guesses(pairs(MU)) <= norm.cdf(MU / 2) + 0.01


def test_epsilon_0_leaves_guessing() -> None:
    nothing = [Bound(epsilon=0.0, delta=0.0)]
    assert most_right_guesses(nothing) == 0.5
    assert most_hits(0.3, nothing) == pytest.approx(0.3)


def test_an_epsilon_beyond_all_bounds_does_not_overflow() -> None:
    nothing_kept = [Bound(epsilon=math.inf, delta=1e-5)]
    assert most_hits(0.01, nothing_kept) == most_right_guesses(nothing_kept) == 1.0

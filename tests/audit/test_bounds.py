"""Lower bounds: against explicit sums and a linear program, and by how often they are wrong."""

import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

from discreet.accounting import Gaussian, PureDP, epsilon, profile
from discreet.accounting.tradeoff import Lines
from discreet.audit.bounds import (
    Guesses,
    both_ways,
    epsilon_of_errors,
    largest,
    one_run_epsilon,
    proportion,
    refutes,
)
from discreet.errors import UserError

DELTA = 1e-5


def exact_tail(right, trials, bias):
    with mpmath.workdps(50):
        return mpmath.fsum(
            mpmath.binomial(trials, k) * mpmath.mpf(bias) ** k * (1 - mpmath.mpf(bias)) ** (trials - k)
            for k in range(right, trials + 1)
        )


@pytest.mark.parametrize(("successes", "trials"), [(0, 30), (3, 30), (17, 30), (30, 30), (410, 1000)])
def test_the_bounds_on_a_proportion_are_where_the_tails_say(successes, trials):
    low, high = proportion(successes, trials, 0.95)
    assert low <= successes / trials <= high
    if successes:
        assert float(exact_tail(successes, trials, low)) == pytest.approx(0.05, rel=1e-6)
    if successes < trials:
        assert float(1 - exact_tail(successes + 1, trials, high)) == pytest.approx(0.05, rel=1e-6)


def exact_one_run_p_value(guesses, at, delta):
    """Theorem 5.2 of Steinke, Nasr, Jagielski, term by term in 50 digits."""
    with mpmath.workdps(50):
        bias = mpmath.e**at / (1 + mpmath.e**at)
        tail = exact_tail(guesses.right, guesses.made, bias)
        slack = max(
            (exact_tail(guesses.right - i, guesses.made, bias) - tail) / i
            for i in range(1, guesses.right + 1)
        )
        return float(tail + 2 * guesses.canaries * delta * slack)


@pytest.mark.parametrize(("canaries", "made", "right"), [(100, 40, 33), (100, 100, 70), (60, 20, 20)])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
def test_the_one_run_bound_is_where_the_theorem_puts_it(canaries, made, right, delta):
    guesses = Guesses(canaries=canaries, made=made, right=right)
    found = one_run_epsilon(guesses, delta=delta)
    assert found > 0.0
    assert exact_one_run_p_value(guesses, found, delta) <= 0.05
    assert exact_one_run_p_value(guesses, found + 1e-3, delta) > 0.05


def best_tail(allowed, guesses):
    """The largest probability of so many right guesses that all conditions allow, as a linear program."""
    made, canaries = guesses.made, guesses.canaries
    numbers = np.arange(made + 1)
    rows, limits = [], []
    for i in range(1, made + 1):
        r = np.where(numbers >= i, numbers, 0) / canaries
        h = np.where(numbers >= i - 1, made - numbers, 0) / canaries
        for slope, offset in zip(allowed.slopes, allowed.offsets, strict=True):
            rows.append(r - slope * h)
            limits.append(offset)
    cost = np.where(numbers >= guesses.right, -1.0, 0.0)
    solved = linprog(cost, A_ub=rows, b_ub=limits, A_eq=np.ones((1, made + 1)), b_eq=[1.0], bounds=(0, 1))
    return -solved.fun


@pytest.mark.parametrize("mu", [0.3, 1.0])
@pytest.mark.parametrize(
    ("canaries", "made", "right"), [(20, 20, 16), (20, 20, 20), (30, 12, 10), (30, 12, 12)]
)
def test_the_recursion_finds_the_optimum_of_the_linear_program(mu, canaries, made, right):
    whole = both_ways(profile([(Gaussian(noise_multiplier=1 / mu), 1)]))
    some = (np.abs(np.log(whole.slopes)) < 5) & (np.arange(len(whole.slopes)) % 5 == 0)
    allowed = Lines(slopes=whole.slopes[some], offsets=whole.offsets[some])
    guesses = Guesses(canaries=canaries, made=made, right=right)
    most = best_tail(allowed, guesses)
    if most < 0.49:
        assert refutes(allowed, guesses, confidence=1 - most * 1.0001)
        assert not refutes(allowed, guesses, confidence=1 - most * 0.9999)
    else:
        assert not refutes(allowed, guesses, confidence=0.51)


def gaussian_game(mu, canaries, made, runs, seed):
    """Guesses on a Gaussian mechanism whose epsilon is known: scores N(0, 1), those of canaries in shifted by mu."""
    draw = np.random.default_rng(seed)
    for _ in range(runs):
        present = draw.random(canaries) < 0.5
        order = np.argsort(draw.standard_normal(canaries) + mu * present)
        half = made // 2
        right = int((~present[order[:half]]).sum() + present[order[-half:]].sum())
        yield Guesses(canaries=canaries, made=2 * half, right=right)


def one_run(guesses):
    return one_run_epsilon(guesses, delta=DELTA)


MU = 0.6
TRUTH = epsilon([(Gaussian(noise_multiplier=1 / MU), 1)], DELTA)
CURVE = both_ways(profile([(Gaussian(noise_multiplier=1 / MU), 1)]))
WEAKER = both_ways(profile([(Gaussian(noise_multiplier=2.5 / MU), 1)]))


def test_the_bounds_lie_below_the_truth_as_often_as_they_say():
    games = list(gaussian_game(MU, 400, 200, 300, seed=1))
    assert np.mean([one_run(guesses) <= TRUTH for guesses in games]) >= 0.95
    assert np.mean([refutes(CURVE, guesses) for guesses in games]) <= 0.05


def test_the_same_check_notices_a_mechanism_that_gives_away_more():
    """The planted fault: the truth is two and a half times what is promised."""
    games = list(gaussian_game(MU, 2000, 200, 40, seed=2))
    assert np.mean([refutes(WEAKER, guesses) for guesses in games]) > 0.9


def test_bounds_that_read_the_guesses_twice_would_be_too_large():
    """The planted fault: each guess is counted four times, as if it came from canaries of its own."""
    games = [
        Guesses(canaries=4 * each.canaries, made=4 * each.made, right=4 * each.right)
        for each in gaussian_game(0.05, 60, 40, 100, seed=3)
    ]
    allowed = both_ways(profile([(Gaussian(noise_multiplier=1 / 0.05), 1)]))
    assert np.mean([refutes(allowed, guesses) for guesses in games]) > 0.05


def randomised_response(at, canaries, runs, seed):
    """The mechanism that makes the most of epsilon: every coin is told, and told right with e^eps/(1 + e^eps)."""
    draw = np.random.default_rng(seed)
    bias = 1 / (1 + math.exp(-at))
    for _ in range(runs):
        yield Guesses(canaries=canaries, made=canaries, right=int(draw.binomial(canaries, bias)))


def test_for_randomised_response_both_bounds_are_nearly_exact_and_hold():
    games = list(randomised_response(1.0, 500, 300, seed=4))
    found = [one_run_epsilon(guesses, delta=0.0) for guesses in games]
    assert np.mean(np.array(found) <= 1.0) >= 0.95
    assert np.median(found) > 0.75
    allowed = both_ways(profile([(PureDP(epsilon=1.0), 1)]))
    assert np.mean([refutes(allowed, guesses) for guesses in games]) <= 0.05
    less = both_ways(profile([(PureDP(epsilon=0.7), 1)]))
    assert np.mean([refutes(less, guesses) for guesses in games]) > 0.5


def test_more_right_guesses_refute_more():
    found = [one_run(Guesses(canaries=500, made=100, right=right)) for right in (50, 70, 90, 100)]
    assert found == sorted(found)
    assert found[0] == 0.0


def test_error_rates_of_a_gaussian_test_prove_no_more_than_its_epsilon():
    for cut in np.linspace(-2, 4, 25):
        proven = epsilon_of_errors(norm.sf(cut), norm.cdf(cut - MU), DELTA)
        assert proven <= TRUTH
    assert epsilon_of_errors(norm.sf(1.0), norm.cdf(1.0 - 2 * MU), DELTA) > epsilon_of_errors(
        norm.sf(1.0), norm.cdf(1.0 - MU), DELTA
    )


def test_halving_finds_what_is_refuted_just_so():
    assert largest(lambda value: value < 1.7, 0.0, 10.0) == pytest.approx(1.7, abs=1e-3)
    assert largest(lambda value: False, 0.5, 10.0) == 0.5
    assert largest(lambda value: True, 0.5, 10.0) == 10.0


@pytest.mark.parametrize("numbers", [(10, 11, 3), (10, 5, 6), (10, 5, -1)])
def test_impossible_guesses_are_refused(numbers):
    canaries, made, right = numbers
    with pytest.raises(UserError, match="guesses"):
        Guesses(canaries=canaries, made=made, right=right)


def test_no_certainty_can_be_asked_for():
    with pytest.raises(UserError, match="confidence is 1"):
        proportion(1, 2, 1.0)

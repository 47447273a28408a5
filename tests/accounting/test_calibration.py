import pytest

from discreet.accounting.budget import Budget
from discreet.accounting.calibration import calibrate_noise, calibrate_releases
from discreet.accounting.composition import epsilon
from discreet.accounting.events import Gaussian, PoissonGaussian, PureDP
from discreet.errors import UserError

STATISTICS = (Gaussian(noise_multiplier=8.0), 2)


def dp_sgd(rate, releases):
    return lambda noise: [(PoissonGaussian(sample_rate=rate, noise_multiplier=noise), releases)]


def is_tight(charges, budget, tolerance=0.01):
    return (1 - tolerance) * budget.epsilon <= epsilon(charges, budget.delta) <= budget.epsilon


@pytest.mark.parametrize(
    ("rate", "releases", "target"),
    [
        (0.01, 1000, 1.0),
        (8192 / 50000, 300, 3.0),
        (0.001, 20_000, 8.0),
        (0.1, 10, 0.1),
        (1.0, 50, 1.0),
        (0.01, 1, 0.5),
    ],
)
def test_calibrated_noise_never_overshoots_and_is_tight(rate, releases, target):
    budget, charges_for = Budget(epsilon=target, delta=1e-5), dp_sgd(rate, releases)
    noise = calibrate_noise(charges_for, budget)
    assert is_tight(charges_for(noise), budget)
    # The planted faults: a little less noise, and noise to spare, both fail the same check.
    assert not is_tight(charges_for(noise * 0.96), budget)
    assert not is_tight(charges_for(noise * 1.04), budget)


def test_noise_is_calibrated_around_what_is_charged_besides():
    budget = Budget(epsilon=1.0, delta=1e-5)
    charges = [
        *dp_sgd(0.01, 1000)(calibrate_noise(lambda s: [*dp_sgd(0.01, 1000)(s), STATISTICS], budget)),
        STATISTICS,
    ]
    assert is_tight(charges, budget)


def test_no_noise_can_make_up_for_a_fixed_cost_above_the_budget():
    with pytest.raises(UserError, match=r"no amount of noise keeps epsilon 0\.5"):
        calibrate_noise(
            lambda s: [*dp_sgd(0.01, 10)(s), (PureDP(epsilon=1.0), 1)], Budget(epsilon=0.5, delta=1e-5)
        )


def test_a_budget_that_needs_hardly_any_noise_is_met():
    budget = Budget(epsilon=1000.0, delta=1e-5)
    noise = calibrate_noise(dp_sgd(0.5, 10), budget)
    assert epsilon(dp_sgd(0.5, 10)(noise), 1e-5) <= 1000.0


@pytest.mark.parametrize(
    ("event", "before", "target", "rdp", "pld"),
    [
        ((1024 / 60000, 2.0), [STATISTICS], 1.0, 330, 458),
        ((2048 / 60000, 4.0), [], 1.0, 784, 930),  # 928 on a grid of 1e-3
        ((8192 / 50000, 11.0), [STATISTICS], 1.0, 131, 179),
        ((8192 / 50000, 5.67), [STATISTICS], 3.0, 480, 562),
        ((1024 / 25000, 2.0), [], 1.0, 103, 128),
    ],
)
def test_known_numbers_of_releases(event, before, target, rdp, pld):
    charged = PoissonGaussian(sample_rate=event[0], noise_multiplier=event[1])
    budget = Budget(epsilon=target, delta=1e-5)
    for calculus, known in (("rdp", rdp), ("best", pld)):
        found = calibrate_releases(lambda _: charged, budget, limit=10**6, before=before, calculus=calculus)
        assert found == known
        within, beyond = (
            epsilon([*before, (charged, n)], 1e-5, calculus=calculus) for n in (found, found + 1)
        )
        assert within <= target < beyond


def test_scheduled_releases_stop_at_the_last_that_fits():
    def event_at(i):
        return PoissonGaussian(sample_rate=0.02, noise_multiplier=4.0 / (1 + i // 20 / 10))

    budget = Budget(epsilon=1.0, delta=1e-5)
    found = calibrate_releases(event_at, budget, limit=2000)
    within, beyond = (epsilon([(event_at(i), 1) for i in range(n)], 1e-5) for n in (found, found + 1))
    assert within <= 1.0 < beyond


def test_the_limit_is_kept_and_too_small_a_budget_refused():
    event = PoissonGaussian(sample_rate=0.01, noise_multiplier=2.0)
    assert calibrate_releases(lambda _: event, Budget(epsilon=8.0, delta=1e-5), limit=37) == 37
    with pytest.raises(UserError, match=r"not even one release keeps epsilon 0\.001"):
        calibrate_releases(lambda _: event, Budget(epsilon=0.001, delta=1e-7), limit=10)
    with pytest.raises(ValueError, match="limit must be at least 1"):
        calibrate_releases(lambda _: event, Budget(epsilon=1.0, delta=1e-7), limit=0)

import numpy as np
import pytest
import torch
from scipy import stats

from discreet.noise.gaussian import GaussianNoise, add_gaussian_, standard_normal
from discreet.noise.key import RunKey
from discreet.schedules import Linear

KEY = RunKey.from_seed(11)
COUNT = 200_000


def looks_standard_normal(values: np.ndarray) -> bool:
    """Kolmogorov-Smirnov over the whole, the variance, and the share beyond three deviations."""
    shape = stats.kstest(values, "norm").pvalue > 1e-4
    variance = abs(values.var() - 1) < 4 * np.sqrt(2 / len(values))
    beyond = (abs(values) > 3).sum()
    expected = len(values) * 2 * stats.norm.sf(3)
    return bool(shape and variance and abs(beyond - expected) < 4 * np.sqrt(expected))


def test_values_are_standard_normal():
    assert looks_standard_normal(standard_normal(KEY.stream("noise", 0), COUNT).numpy())


@pytest.mark.parametrize("scale", [0.8, 0.98, 1.02])
def test_the_same_check_refuses_another_scale(scale):
    assert not looks_standard_normal(scale * standard_normal(KEY.stream("noise", 0), COUNT).numpy())


def test_the_same_check_refuses_uniform_noise():
    uniform = np.random.default_rng(0).uniform(-np.sqrt(3), np.sqrt(3), COUNT)
    assert not looks_standard_normal(uniform)


def test_the_two_halves_of_a_pair_are_uncorrelated():
    values = standard_normal(KEY.stream("noise", 1), COUNT).numpy()
    one, two = values[: COUNT // 2], values[COUNT // 2 :]
    for left, right in ((one, two), (one**2, two**2)):
        assert abs(np.corrcoef(left, right)[0, 1]) < 4 / np.sqrt(COUNT // 2)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 65_535, 65_537, 140_001])
def test_any_number_of_values_can_be_had(count):
    vector = add_gaussian_(torch.zeros(count), 1.0, KEY.stream("noise", 2))
    assert vector.shape == (count,)
    assert vector.isfinite().all()
    assert len(vector.unique()) >= 0.99 * count


def test_noise_is_added_to_what_is_there_in_the_scale_asked_for():
    start = torch.full((COUNT,), 5.0)
    noisy = add_gaussian_(start.clone(), 3.0, KEY.stream("noise", 3))
    assert looks_standard_normal(((noisy - start) / 3.0).double().numpy())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_noise_is_rounded_to_the_type_of_the_sum_once(dtype):
    vector = add_gaussian_(torch.zeros(1000, dtype=dtype), 1.0, KEY.stream("noise", 4))
    exact = standard_normal(KEY.stream("noise", 4), 1000)
    assert vector.equal(exact.to(dtype))


def test_releases_get_noise_of_their_own():
    one, two = (standard_normal(KEY.stream("noise", n), COUNT).numpy() for n in (5, 6))
    assert abs(np.corrcoef(one, two)[0, 1]) < 4 / np.sqrt(COUNT)


def test_the_multiplier_follows_its_schedule():
    noise = GaussianNoise(multiplier=2.0, releases=11, schedule=Linear(start=1.0, end=0.5))
    assert noise.multiplier_at(0) == 2.0
    assert noise.multiplier_at(10) == 1.0


@pytest.mark.parametrize("multiplier", [0.0, -1.0, float("nan"), float("inf")])
def test_no_noise_is_no_privacy(multiplier):
    with pytest.raises(ValueError, match="above 0"):
        GaussianNoise(multiplier=multiplier, releases=1)

import numpy as np
import pytest
from scipy import stats

from discreet.noise.key import RunKey
from discreet.sampling import PoissonSampler

EXAMPLES, RATE, BATCHES = 400, 0.1, 600


def poisson_batches():
    key, sampler = RunKey.from_seed(1), PoissonSampler(examples=EXAMPLES, rate=RATE)
    return [sampler.draw(key.stream("batch", n)).numpy() for n in range(BATCHES)]


def shuffled_batches():
    """The planted fault: an epoch's records in shuffled order, cut into batches of equal size."""
    rng = np.random.default_rng(1)
    size = round(EXAMPLES * RATE)
    epochs = BATCHES * size // EXAMPLES
    return [part for _ in range(epochs) for part in np.split(rng.permutation(EXAMPLES), EXAMPLES // size)]


def fixed_size_batches():
    """The planted fault: batches of one size, drawn without replacement."""
    rng = np.random.default_rng(1)
    return [rng.choice(EXAMPLES, round(EXAMPLES * RATE), replace=False) for _ in range(BATCHES)]


def looks_like_poisson_sampling(batches) -> bool:
    """Sizes are binomial, records are in equally often, and one batch does not depend on the next."""
    table = np.zeros((len(batches), EXAMPLES), dtype=bool)
    for row, batch in zip(table, batches, strict=True):
        row[batch] = True
    sizes, counts = table.sum(1), table.sum(0)
    spread = sizes.var(ddof=1) / (EXAMPLES * RATE * (1 - RATE))
    dispersion = stats.chi2(len(batches) - 1)
    spread_is_right = dispersion.ppf(1e-4) < spread * (len(batches) - 1) < dispersion.ppf(1 - 1e-4)
    mean_is_right = abs(sizes.mean() - EXAMPLES * RATE) < 4 * np.sqrt(
        EXAMPLES * RATE * (1 - RATE) / len(batches)
    )
    between_records = stats.chi2(EXAMPLES - 1)
    uniformity = ((counts - counts.mean()) ** 2).sum() / (len(batches) * RATE * (1 - RATE))
    records_are_even = between_records.ppf(1e-4) < uniformity < between_records.ppf(1 - 1e-4)
    again = (table[1:] & table[:-1]).mean() / RATE**2
    steps_are_independent = abs(again - 1) < 4 / np.sqrt(table[1:].size * RATE**2)
    return bool(spread_is_right and mean_is_right and records_are_even and steps_are_independent)


def test_batches_are_poisson_samples():
    assert looks_like_poisson_sampling(poisson_batches())


@pytest.mark.parametrize("fault", [shuffled_batches, fixed_size_batches])
def test_the_same_check_refuses_other_ways_to_sample(fault):
    assert not looks_like_poisson_sampling(fault())


def test_a_batch_is_the_same_when_drawn_again():
    key, sampler = RunKey.from_seed(3), PoissonSampler(examples=1000, rate=0.3)
    first, second = (sampler.draw(key.stream("batch", 7)) for _ in range(2))
    assert first.equal(second)
    assert not first.equal(sampler.draw(key.stream("batch", 8)))


def test_a_tiny_rate_gives_empty_batches_and_a_rate_of_one_gives_everything():
    key = RunKey.from_seed(0)
    assert len(PoissonSampler(examples=100, rate=1e-12).draw(key.stream("batch", 0))) == 0
    assert PoissonSampler(examples=5, rate=1.0).draw(key.stream("batch", 0)).tolist() == [0, 1, 2, 3, 4]


def test_the_divisor_is_public():
    assert PoissonSampler(examples=1000, rate=0.25).expected_batch_size == 250


@pytest.mark.parametrize(("examples", "rate"), [(1, 0.5), (10, 0.0), (10, 1.5), (10, float("nan"))])
def test_impossible_samplers_are_refused(examples, rate):
    with pytest.raises(ValueError, match="is"):
        PoissonSampler(examples=examples, rate=rate)

import math
from itertools import pairwise

import pytest

from discreet.errors import UserError
from discreet.memory.kernels import KERNELS, Kernel, depth, kernel


def test_a_fractional_kernel_by_hand():
    raw = [2**-0.5, 3**-0.5, 4**-0.5]
    assert Kernel(order=0.5).weights(3) == pytest.approx([each / sum(raw) for each in raw])


def test_a_tempered_kernel_by_hand():
    raw = [2**-0.3 * math.exp(-0.4), 3**-0.3 * math.exp(-0.8)]
    assert Kernel(order=0.7, tempering=0.4).weights(2) == pytest.approx([each / sum(raw) for each in raw])


def test_an_exponential_kernel_falls_by_a_constant_factor():
    weights = kernel("exponential", order=0.3, tempering=0.7).weights(5)
    assert [after / before for before, after in pairwise(weights)] == pytest.approx([math.exp(-0.7)] * 4)


def test_order_one_without_tempering_weighs_all_lags_alike():
    assert Kernel().weights(4) == [0.25] * 4
    assert kernel("uniform", order=0.3, tempering=2.0) == Kernel()


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "none"])
@pytest.mark.parametrize("lags", [1, 2, 7, 300])
def test_weights_of_every_kernel_are_positive_sum_to_one_and_never_grow_with_the_lag(name, lags):
    weights = kernel(name, order=0.6, tempering=0.2).weights(lags)
    assert sum(weights) == pytest.approx(1.0)
    assert min(weights) > 0
    assert weights == sorted(weights, reverse=True)


def test_no_lag_has_no_weights_and_no_depth():
    assert Kernel().weights(0) == []
    assert depth([]) == 0


def test_a_very_strong_tempering_leaves_the_newest_alone():
    assert Kernel(tempering=1e6).weights(3) == [1.0, 0.0, 0.0]


def test_more_tempering_and_a_smaller_order_shorten_the_memory():
    assert depth(Kernel().weights(3)) == 2.0
    depths = [depth(Kernel(order=0.7, tempering=each).weights(7)) for each in (0.0, 0.3, 1.0, 5.0)]
    assert depths == sorted(depths, reverse=True)
    assert depth(Kernel(order=0.2).weights(7)) < depth(Kernel(order=0.9).weights(7))


@pytest.mark.parametrize(
    "wrong",
    [{"order": 0.0}, {"order": 1.1}, {"order": math.nan}, {"tempering": -0.1}, {"tempering": math.inf}],
)
def test_a_kernel_that_is_none_is_refused_by_name(wrong):
    with pytest.raises(UserError, match=next(iter(wrong))):
        Kernel(**wrong)


def test_an_unknown_kernel_is_refused_and_none_remembers_nothing():
    with pytest.raises(UserError, match=r"'gaussian'.*'fractional'"):
        kernel("gaussian", order=0.5, tempering=0.0)
    assert kernel("none", order=0.5, tempering=0.0) is None

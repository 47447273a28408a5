"""SMA-DP-SGD: Algorithm 1 of the paper written out, and its limiting cases (appendix B.10)."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from discreet.errors import UserError
from discreet.memory import FilteringMemory, Kernel, SpectralMemory
from discreet.memory.groups import layers
from discreet.memory.spectrum import exponent
from discreet.recipes import DPSGD, SMADPSGD

MEMORY = SpectralMemory(
    fresh_weight=0.6,
    window=4,
    order=0.7,
    interval=(1.2, 1.5),  # narrow, so that the layers' exponents lie outside
    tempering_strength=0.5,
    trend_recency=0.3,
    norm_cap=2.0,
    warm_up=3.0,
    stability=1e-12,
    spectrum_every=1,
)
SIZES = {"expected_batch_size": 30, "releases": 10, "learning_rate": 0.7, "clip_norm": 0.8}
PLAIN = {**SIZES, "noise_multiplier": 1.2, "clipping": "layer-wise"}


def gated(trend, memory, cap):
    """Gamma and Psi."""
    norms = float(trend.norm()), float(memory.norm())
    return max(0.0, float(trend @ memory) / (norms[0] * norms[1] + 1e-12)), min(
        cap, norms[0] / (norms[1] + 1e-12)
    )


def algorithm_1(seen) -> list[torch.Tensor]:
    """The releases of the paper's Algorithm 1, layer by layer, with lists for histories."""
    m, found = seen.memory, [each.clone() for each in seen.fresh]
    low, high = m.interval
    for group in layers(seen.layout):
        rho = math.nan
        if group.matrix is not None:
            rho = exponent(seen.weights[group.matrix].view(group.shape))
        distance = 0.0 if math.isnan(rho) else max(0.0, low - rho, rho - high)
        tempering = 1 - math.exp(-m.tempering_strength * distance)
        history, trend = [], None
        for t, fresh in enumerate(seen.fresh):
            release = fresh[group.span].clone()
            lags = min(m.window - 1, t)
            if lags:
                raw = [(j + 1) ** (m.order - 1) * math.exp(-tempering * j) for j in range(1, lags + 1)]
                memory = sum(a / sum(raw) * history[-j] for j, a in enumerate(raw, start=1))
                gate, scale = gated(trend, memory, m.norm_cap)
                warmth = 1 - math.exp(-t / m.warm_up)
                release += (1 - m.fresh_weight) * warmth * gate * scale * memory
            history.append(release)
            trend = release if t == 0 else m.trend_recency * release + (1 - m.trend_recency) * trend
            found[t][group.span] = release
    return found


CASES = {
    "as it is": {},
    "two lags": {"window": 3},
    "one lag": {"window": 2},
    "a long window": {"window": 9},
    "no tempering": {"tempering_strength": 0.0},
    "strong tempering": {"tempering_strength": 50.0},
    "a wide interval": {"interval": (1.0, 1e6)},
    "order 1": {"order": 1.0},
    "a cap that bites": {"norm_cap": 0.2},
    "the newest as trend": {"trend_recency": 1.0},
    "beta 1": {"fresh_weight": 1.0},
    "no window": {"window": 1},
}


@pytest.mark.parametrize("case", CASES)
def test_blends_are_those_of_the_papers_algorithm(stream, same, case):
    seen = stream(replace(MEMORY, **CASES[case]))
    same(seen.blends(), algorithm_1(seen))


@pytest.mark.parametrize("case", ["two lags", "order 1", "no tempering", "a cap that bites", "beta 1"])
def test_the_same_check_notices_another_setting(stream, same, case):
    """The planted fault: the algorithm with one setting, the memory with another."""
    seen = stream(MEMORY)
    blends, other = seen.blends(), stream(replace(MEMORY, **CASES[case]))
    with pytest.raises(AssertionError):
        same(blends, algorithm_1(other))


class TestLimitingCases:
    def test_beta_one_is_group_wise_dp_sgd_to_the_last_bit(self, runs):
        found = runs.path(SMADPSGD(**PLAIN, fresh_weight=1.0))
        plain = runs.path(DPSGD(**PLAIN, momentum=0.0))
        assert all(one.equal(other) for one, other in zip(found, plain, strict=True))

    def test_a_window_of_one_has_no_memory(self, runs, same):
        found = runs.path(SMADPSGD(**PLAIN, fresh_weight=0.6, window=1))
        shorter = {**PLAIN, "learning_rate": 0.6 * 0.7, "noise_multiplier": 1.2 / 0.6}
        same(found, runs.path(DPSGD(**shorter, momentum=0.0)))

    def test_before_it_is_warm_a_memory_adds_nothing(self, stream, same):
        seen = stream(replace(MEMORY, warm_up=1e15))
        same(seen.blends(), seen.fresh, atol=1e-10)

    def test_a_memory_that_points_against_the_trend_adds_nothing(self, stream):
        """The newest release is the trend, and all before it were its opposite."""
        seen = stream(replace(MEMORY, trend_recency=1.0, order=1.0, tempering_strength=0.0, window=5))
        there = seen.fresh[0]
        seen.fresh = [there, there, there, -20 * there, 2 * there]
        blends = seen.blends()
        # At the last release the trend is the fourth; the memory's mean of four is on its side.
        assert not torch.allclose(blends[4], seen.fresh[4])
        seen.fresh = [20 * there, there, there, -2 * there, 2 * there]
        blends = seen.blends()
        assert blends[4].equal(seen.fresh[4])
        assert seen.told[4]["memory ratio"] == 0.0

    def test_inside_the_interval_the_kernel_is_fractional(self, stream):
        seen = stream(replace(MEMORY, interval=(1.0, 1e6)))
        seen.blends()
        assert {told["lambda 1"] for told in seen.told[1:]} == {0.0}
        weights = Kernel(order=0.7).weights(3)
        assert seen.told[-1]["memory depth"] == pytest.approx(sum(j * w for j, w in enumerate(weights, 1)))

    def test_order_one_leaves_the_exponential(self, stream):
        seen = stream(replace(MEMORY, order=1.0))
        seen.blends()
        tempering = [MEMORY.tempering(float(rho)) for rho in seen.recollection.exponents]
        weights = [Kernel(tempering=each).weights(3) for each in tempering]
        depths = [sum(j * w for j, w in enumerate(each, 1)) for each in weights]
        assert seen.told[-1]["memory depth"] == pytest.approx(sum(depths) / len(depths))
        assert max(tempering) > 0

    def test_order_one_inside_the_interval_weighs_all_lags_alike(self, stream, same):
        """With one direction throughout the gate is open, and a cap of 1 with equal norms leaves the mean alone."""
        seen = stream(replace(MEMORY, order=1.0, interval=(1.0, 1e6), warm_up=1e-9, norm_cap=1e9))
        blends = seen.blends()
        group = layers(seen.layout)[0].span
        mean = (blends[6] + blends[7] + blends[8])[group] / 3
        branch = (blends[9] - seen.fresh[9])[group]
        torch.testing.assert_close(branch / branch.norm(), mean / mean.norm())


class TestTempering:
    def test_it_is_zero_inside_the_interval_and_grows_with_the_distance_to_either_side(self):
        tempering = replace(MEMORY, interval=(2.0, 6.0)).tempering
        assert [tempering(rho) for rho in (2.0, 4.0, 6.0)] == [0.0] * 3
        assert tempering(7.0) == pytest.approx(1 - math.exp(-0.5)) == tempering(1.0)
        assert tempering(9.0) > tempering(7.0)

    def test_a_layer_without_an_exponent_is_not_tempered_and_one_with_an_infinite_one_fully(self):
        assert MEMORY.tempering(math.nan) == 0.0
        assert MEMORY.tempering(math.inf) == 1.0
        assert replace(MEMORY, tempering_strength=0.0).tempering(math.inf) == 0.0


class TestTheSpectrum:
    def test_it_is_looked_at_from_the_second_release_on_and_at_every_rth(self, stream, monkeypatch):
        from discreet.memory import spectrum

        seen, looks = stream(replace(MEMORY, spectrum_every=4), releases=11), []
        monkeypatch.setattr(spectrum, "exponent", lambda matrix: looks.append(len(seen.told)) or 3.0)
        seen.blends()
        assert looks == [1, 1, 5, 5, 9, 9]  # two layers have a matrix

    def test_it_is_that_of_the_weights_before_the_update(self, runs):
        run = runs.start(SMADPSGD(**PLAIN, spectrum_every=1))
        run.release()
        group = layers(run.layout)[0]
        expected = exponent(run.state.parameters[group.matrix].view(group.shape))
        run.release()
        assert float(run.state.recollection.exponents[0]) == expected

    def test_kernels_of_convolutions_are_read_as_one_matrix_and_normalisations_have_none(self):
        from discreet.gradients.layout import FlatLayout
        from discreet.models import build

        groups = layers(FlatLayout.of(build("resnet18-gn", (3, 32, 32), 10, width=32)))
        assert groups[0].shape == (32, 27)
        assert groups[1].matrix is None
        assert groups[-1].shape == (10, 256)
        assert [group.stage for group in groups if group.name.endswith("body.0")][:3] == ["3", "4", "5"]


def test_layers_fill_the_flat_vector_without_gap_or_overlap(stream):
    layout = stream(MEMORY).layout
    spans = [group.span for group in layers(layout)]
    assert spans[0].start == 0
    assert spans[-1].stop == layout.size
    assert all(one.stop == other.start for one, other in pairwise(spans))


def test_what_is_told_is_finite_and_names_stages(stream):
    seen = stream(MEMORY)
    seen.blends()
    assert seen.told[0] == {}
    assert set(seen.told[1]) == {"memory depth", "memory ratio", "rho 1", "rho 4", "lambda 1", "lambda 4"}
    assert 0 < seen.told[-1]["memory ratio"] < 1
    assert 1 <= seen.told[-1]["memory depth"] <= 3


def test_a_memory_and_a_filter_agree_where_the_gate_is_open_and_norms_match(stream, same):
    """Along one direction Gamma is 1; the trend of the newest release alone has the norm to match."""
    spectral = replace(
        MEMORY, order=1.0, interval=(1.0, 1e6), warm_up=1e-9, norm_cap=1e9, trend_recency=1.0, window=2
    )
    one, other = stream(spectral), stream(FilteringMemory(fresh_weight=0.6, window=2, kernel=Kernel()))
    one.fresh = other.fresh = [abs(math.sin(n) + 2) * one.fresh[0] for n in range(8)]
    same(one.blends(), other.blends(), atol=1e-9)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"interval": (6.0, 2.0)}, "interval is"),
        ({"interval": (0.5, 2.0)}, "interval is"),
        ({"trend_recency": 0.0}, "trend_recency is 0.0"),
        ({"spectrum_every": 0}, "spectrum_every is 0"),
        ({"norm_cap": 0.0}, "norm_cap is 0.0"),
        ({"warm_up": -1.0}, "warm_up is -1.0"),
        ({"stability": 0.0}, "stability is 0.0"),
        ({"tempering_strength": math.inf}, "tempering_strength is inf"),
        ({"groups": 3}, "groups belong together"),
        ({"clipping": "group-wise"}, "groups belong together"),
        ({"clipping": "group-wise", "groups": 0}, "groups is 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused_by_name(wrong, complaint):
    with pytest.raises(UserError, match=complaint):
        SMADPSGD(**wrong)

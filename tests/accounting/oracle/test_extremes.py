"""At the edges of floating point: bounds stay bounds, and move the way they must when a parameter moves."""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from ascents import silent_train, worst_visible, worst_visible_profile
from exact_trials import exact_visible_profile, exact_visible_rdp, trial_law
from hunts import setting_of

from discreet.accounting import composition
from discreet.accounting.budget import Accounting
from discreet.accounting.events import PoissonGaussian
from discreet.accounting.profiles import privacy_profile
from discreet.accounting.rdp import ORDERS, certified_rdp, rdp_curve
from discreet.accounting.selective.events import (
    AnnealedTrial,
    BatchGatedTrial,
    BufferedRelease,
    GatedTrial,
    ScoredTrial,
)

GATED = GatedTrial(
    sample_rate=0.05, noise_multiplier=1.1, gate_rate=0.02, gate_multiplier=1.3, gate_threshold=-1.0
)
PUBLIC = {
    "sample_rate": 0.05,
    "noise_multiplier": 1.1,
    "gate_rate": 0.02,
    "gate_multiplier": 1.3,
    "gate_threshold": -1.0,
}
EVENTS = {
    "gated": GATED,
    "annealed": AnnealedTrial(
        sample_rate=0.05, noise_multiplier=1.1, gate_rate=0.02, gate_multiplier=1.3, coldness=2.0
    ),
    "scored": ScoredTrial(**PUBLIC),
    "chosen": BufferedRelease(**PUBLIC, tie=0.2),
    "both": BufferedRelease(**PUBLIC, charge_all=True),
    "batch": BatchGatedTrial(
        sample_rate=0.05, noise_multiplier=1.1, gate_multiplier=1.3, gate_threshold=0.5, one_sided=True
    ),
    "batch with its score": BatchGatedTrial(
        sample_rate=0.05,
        noise_multiplier=1.1,
        gate_multiplier=1.3,
        gate_threshold=0.5,
        private_reference=True,
    ),
}
SOME_ORDERS = np.array([1.1, 2.0, 3.7, 8.0, 20.0, 64.0])
EPSILONS = np.array([0.0, 1e-3, 0.05, 0.4, 2.0, 9.0])


def accountings(name):
    both = (Accounting.HIDDEN, Accounting.VISIBLE)
    return both[:1] if name in ("chosen", "both") else both


EACH = [(name, accounting) for name in EVENTS for accounting in accountings(name)]


def assert_valid_curve(curve):
    assert not np.isnan(curve).any()
    assert (curve >= 0).all()
    finite = np.isfinite(curve)
    assert not (np.diff(finite.astype(int)) > 0).any() or finite.all() or not finite.any()


CHANGES = [
    {"sample_rate": 1e-12},
    {"sample_rate": 1.0},
    {"noise_multiplier": 0.02},
    {"noise_multiplier": 1e6},
    {"gate_multiplier": 0.05},
    {"gate_multiplier": 1e4},
    {"gate_rate": 0.0},
    {"gate_rate": 1.0},
    {"gate_threshold": -60.0},
    {"gate_threshold": 60.0},
    {"coldness": 0.0},
    {"coldness": 500.0},
    {"sample_rate": 1.0, "noise_multiplier": 0.05, "gate_multiplier": 0.1, "gate_threshold": -3.0},
]


@pytest.mark.parametrize(
    ("name", "accounting", "changes"),
    [
        pytest.param(*each, changes, id=f"{each[0]} {each[1]} {changes}")
        for changes in CHANGES
        for each in EACH
        if all(hasattr(EVENTS[each[0]], field) for field in changes)
    ],
)
def test_extreme_parameters_never_give_a_number_that_is_not_one(name, accounting, changes):
    event = replace(EVENTS[name], **changes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            curve = certified_rdp(event, SOME_ORDERS, accounting)
            profile = privacy_profile(event, accounting)
            curves = profile.add(EPSILONS), profile.remove(EPSILONS)
        except ValueError as refused:
            if "gate" not in str(refused):
                raise
            return
    assert_valid_curve(curve)
    for values in curves:
        assert ((values >= 0) & (values <= 1)).all()
        assert (np.diff(values) <= 1e-15).all()
    plain = PoissonGaussian(sample_rate=event.sample_rate, noise_multiplier=event.noise_multiplier)
    if accounting is Accounting.HIDDEN and event.sample_rate > 1e-9:
        # A gate may not make the release of a candidate cheaper than no gate at all.
        floor = rdp_curve(plain, SOME_ORDERS, accounting)
        assert (curve >= floor * (1 - 1e-6)).all()


@pytest.mark.parametrize(("name", "accounting"), EACH)
@pytest.mark.parametrize(
    "orders", [np.array([1.0001, 1.01]), np.array([512.0, 4096.0, 16384.0])], ids=["low", "high"]
)
def test_extreme_orders_are_bounded_or_infinite(name, accounting, orders):
    curve = certified_rdp(EVENTS[name], orders, accounting)
    assert_valid_curve(curve)
    assert np.isfinite(curve).all()


FACTORS = {
    "noise_multiplier": (1.0, 0.8, 0.6),
    "sample_rate": (1.0, 1.5, 3.0),
    "gate_multiplier": (1.0, 0.8, 0.6),
}


@pytest.mark.parametrize(
    ("name", "accounting", "field"),
    # A sharper gate may publish less often, which is worth something to those who see the trials.
    [
        (*each, field)
        for each in EACH
        for field in FACTORS
        if (each[1], field) != ("visible", "gate_multiplier")
    ],
)
def test_less_noise_and_larger_batches_cost_more(name, accounting, field):
    base = EVENTS[name]
    events = [replace(base, **{field: getattr(base, field) * factor}) for factor in FACTORS[field]]
    curves = [certified_rdp(event, SOME_ORDERS, accounting) for event in events]
    # Chords of tables make a profile up to a thousandth larger than what it bounds.
    profiles = [privacy_profile(event, accounting) for event in events]
    for cheaper, dearer in pairwise(curves):
        assert (dearer >= cheaper * (1 - 1e-3)).all()
    for side in ("add", "remove"):
        values = [getattr(profile, side)(EPSILONS) for profile in profiles]
        for cheaper, dearer in pairwise(values):
            assert (dearer >= cheaper * (1 - 5e-3) - 1e-12).all()


def test_hidden_bounds_grow_with_the_gates_selectivity():
    thresholds = [2.0, 0.5, -0.5, -1.0, -2.0]
    curves = [rdp_curve(replace(GATED, gate_threshold=t), SOME_ORDERS, Accounting.HIDDEN) for t in thresholds]
    for cheaper, dearer in pairwise(curves):
        assert (dearer >= cheaper * (1 - 1e-6)).all()


def test_a_gate_that_lets_everything_pass_is_no_gate():
    orders = np.array([1.5, 2.0, 8.0, 40.0])
    plain = PoissonGaussian(sample_rate=0.05, noise_multiplier=1.1)
    for event in (
        replace(GATED, gate_threshold=40.0),
        AnnealedTrial(
            sample_rate=0.05, noise_multiplier=1.1, gate_rate=0.02, gate_multiplier=1.3, coldness=0.0
        ),
    ):
        for accounting in (Accounting.HIDDEN, Accounting.VISIBLE):
            same = rdp_curve(event, orders, accounting)
            assert same == pytest.approx(rdp_curve(plain, orders, accounting), rel=1e-6)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_composed_deltas_are_above_those_of_explicit_mechanisms(count):
    """Trials that are the same explicit mechanism, composed exactly on a fine histogram of its loss, from below."""
    epsilon = 0.3
    setting = setting_of(GATED)
    for add in (True, False):
        for gate in worst_visible_profile(setting, epsilon / count, add=add):
            law = trial_law(silent_train(setting), gate)
            z, z_prime = (np.exp(log) for log in law.log_accept)
            top, low = (law.log_q, law.log_p) if add else (law.log_p, law.log_q)
            mass = np.append(np.exp(top + law.log_weights).ravel(), 1 - (z_prime if add else z))
            other = np.append(np.exp(low + law.log_weights).ravel(), 1 - (z if add else z_prime))
            exact = _composed_from_below(mass, other, count, epsilon)
            bound = composition.delta([(GATED, count)], epsilon, calculus="pld")
            assert exact <= bound * (1 + 1e-9)
            if count == 1:
                side = 0 if add else 1
                assert exact == pytest.approx(
                    exact_visible_profile(silent_train(setting), gate, epsilon)[side], rel=0.02
                )


def _composed_from_below(mass, other, count, epsilon):
    """Hockey-stick divergence of `count` copies after a post-processing that merges outcomes of like loss."""
    step = 2e-3
    with np.errstate(divide="ignore", invalid="ignore"):
        cell = np.floor(np.log(mass / other) / step)
    keep = np.isfinite(cell)
    cell = cell[keep].astype(int)
    low = cell.min()
    top, bottom = (np.bincount(cell - low, weights=values[keep]) for values in (mass, other))
    total_top, total_bottom = top, bottom
    for _ in range(count - 1):
        total_top, total_bottom = np.convolve(total_top, top), np.convolve(total_bottom, bottom)
    return float(np.maximum(total_top - np.exp(epsilon) * total_bottom, 0.0).sum())


def test_the_best_visible_renyi_bound_is_above_the_worst_explicit_gate_at_every_order():
    curve = certified_rdp(GATED, ORDERS, Accounting.VISIBLE)
    setting = setting_of(GATED)
    for order in (1.3, 5.0, 40.0, 128.0):
        for side, add in enumerate((True, False)):
            law = trial_law(silent_train(setting), worst_visible(setting, order, add=add)[1], order)
            assert exact_visible_rdp(law, order)[side] <= curve[order == ORDERS][0] * (1 + 1e-9)


@pytest.mark.parametrize("accounting", [Accounting.VISIBLE, Accounting.HIDDEN])
@pytest.mark.parametrize("rate", [1.0, 1 - 1e-12, 1 - 1e-6])
def test_hardly_noisy_full_batches_keep_their_profile_in_both_directions(accounting, rate):
    """The gate says next to nothing here, so the profile is that of the plain Gaussian, thinned if trials are seen."""
    event = replace(
        GATED,
        sample_rate=rate,
        noise_multiplier=0.1,
        gate_rate=1e-7,
        gate_multiplier=300.0,
        gate_threshold=0.0,
    )
    epsilons = np.array([0.5, 5.0, 20.0, 40.0, 60.0])
    plain = privacy_profile(PoissonGaussian(sample_rate=rate, noise_multiplier=0.1), accounting)
    share = 1.0 if accounting is Accounting.HIDDEN else event.acceptance.low
    for side in ("add", "remove"):
        bound, floor = (getattr(p, side)(epsilons) for p in (privacy_profile(event, accounting), plain))
        assert (bound >= share * floor * (1 - 1e-9)).all()

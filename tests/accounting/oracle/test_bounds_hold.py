"""No explicit mechanism leaks more than the certified bounds say, and the same hunt finds planted faults."""

import numpy as np
import pytest
from hunts import HUNTS, Bounds, judge

from discreet.accounting.budget import Accounting
from discreet.accounting.events import PoissonGaussian
from discreet.accounting.profiles import privacy_profile
from discreet.accounting.rdp import rdp_curve
from discreet.accounting.selective.corners import Corners, acceptance_corners
from discreet.accounting.selective.hidden import hidden_rdp
from discreet.accounting.selective.visible import exact_rdp

ROUNDS = {
    "toys": 16,
    "ascents": 16,
    "profiles": 8,
    "batches": 9,
    "scored batches": 10,
    "choices": 24,
    "other profiles": 5,
}


@pytest.fixture(scope="module")
def exacts():
    """The exact divergences of every hunt: computed once, compared with sound and with faulty bounds."""
    rng = np.random.default_rng(2024)
    return {name: [e for _ in range(rounds) for e in HUNTS[name](rng)] for name, rounds in ROUNDS.items()}


def violated(exacts, bounds):
    return {case.claim for case in judge(exacts, bounds) if case.violated}


@pytest.mark.parametrize("hunt", HUNTS)
def test_no_mechanism_exceeds_a_certified_bound(exacts, hunt):
    found = list(judge(exacts[hunt], Bounds()))
    assert [case for case in found if case.violated] == []
    assert all(np.isfinite(case.bound) for case in found)


def test_thousands_of_cases_are_hunted(exacts):
    assert 2 * sum(len(found) for found in exacts.values()) > 5000


def test_exact_bounds_are_attained(exacts):
    found = [case for case in judge(exacts["ascents"], Bounds()) if case.bound > 1e-9]
    for claim in ("hidden-B", "reweighting", "visible-rdp"):
        assert max(case.exact / case.bound for case in found if case.claim == claim) > 1 - 1e-6


class ScaledBounds(Bounds):
    """Every bound a tenth too small."""

    def of(self, claim, event, grid):
        add, remove = super().of(claim, event, grid)
        return 0.9 * add, 0.9 * remove


def test_bounds_a_tenth_too_small_are_caught(exacts):
    assert violated(exacts["ascents"], ScaledBounds()) == {"hidden-B", "reweighting", "visible-rdp"}
    assert violated(exacts["toys"], ScaledBounds()) >= {"visible-rdp", "thinning"}
    assert violated(exacts["profiles"], ScaledBounds()) == {"hidden-profile", "visible-profile"}
    assert violated(exacts["batches"], ScaledBounds()) == {"same-batch hidden", "same-batch visible"}
    assert violated(exacts["choices"], ScaledBounds()) == {"scored", "chosen"}
    assert violated(exacts["other profiles"], ScaledBounds())


class OneDirection(Bounds):
    """The cheaper direction counts for both."""

    def of(self, claim, event, grid):
        cheaper = np.minimum(*super().of(claim, event, grid))
        return cheaper, cheaper


def test_a_bound_in_one_direction_only_is_caught(exacts):
    assert violated(exacts["ascents"], OneDirection()) == {"hidden-B", "reweighting", "visible-rdp"}
    assert "same-batch hidden" in violated(exacts["batches"], OneDirection())


class MissingCorner(Bounds):
    """The gate that is lax without the record and strict with it is forgotten."""

    def of(self, claim, event, grid):
        if claim not in ("hidden-B", "visible-rdp"):
            return super().of(claim, event, grid)
        corners = acceptance_corners(event.acceptance)
        keep = corners.log_ratio >= 0.0
        columns = (corners.without, corners.with_record, corners.passing_rest, corners.record_rest)
        kept = Corners(*(column[keep] for column in columns))
        return (hidden_rdp if claim == "hidden-B" else exact_rdp)(event.law, kept, grid)


def test_a_missing_corner_is_caught(exacts):
    assert violated(exacts["ascents"], MissingCorner()) == {"hidden-B", "visible-rdp"}


class RejectionsForFree(Bounds):
    """Only the chance that a candidate is published is charged, not what its rejection tells."""

    def of(self, claim, event, grid):
        if claim != "visible-profile":
            return super().of(claim, event, grid)
        event = PoissonGaussian(sample_rate=event.sample_rate, noise_multiplier=event.noise_multiplier)
        profile = privacy_profile(event, Accounting.VISIBLE)
        return profile.add(grid), profile.remove(grid)


def test_uncharged_rejections_are_caught(exacts):
    assert violated(exacts["profiles"], RejectionsForFree()) == {"visible-profile"}


class PapersFormulas(Bounds):
    """What the papers charge: plain sampled Gaussians per accepted update, the batch gate at a raised rate."""

    def of(self, claim, event, grid):
        if claim == "same-batch hidden":
            ratio, q = event.gate.high_ratio, event.sample_rate
            curve = _sampled(q * ratio / (1 - q + q * ratio), event.noise_multiplier, grid)
        elif claim in ("hidden-B", "scored", "chosen"):
            curve = _sampled(event.sample_rate, event.noise_multiplier, grid)
            curve = curve + _sampled(event.gate_rate, event.gate_multiplier, grid)
        else:
            return super().of(claim, event, grid)
        return curve, curve


def _sampled(rate, noise, orders):
    event = PoissonGaussian(sample_rate=rate, noise_multiplier=noise)
    return rdp_curve(event, orders, Accounting.VISIBLE)


def test_the_papers_formulas_are_exceeded_by_explicit_mechanisms(exacts):
    assert violated(exacts["ascents"], PapersFormulas()) == {"hidden-B"}
    assert violated(exacts["batches"], PapersFormulas()) == {"same-batch hidden"}
    assert violated(exacts["choices"], PapersFormulas()) >= {"scored"}

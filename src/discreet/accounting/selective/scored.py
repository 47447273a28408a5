"""Trials whose noisy score is released together with an accepted candidate, as privacy profiles.

Given an accepted candidate with corner (a, b), the score's ratio is b/a times u, the ratio of a Gaussian sampled at a
tilted rate (`Corners.score`), independent of v.
"""

from __future__ import annotations

import numpy as np

from discreet.accounting.profiles import Profile
from discreet.accounting.selective.corners import Corners
from discreet.accounting.selective.likelihood import ROUNDING, Floats, LikelihoodRatio, mean_preserving_spread
from discreet.accounting.selective.tables import knots_of, tabulated
from discreet.accounting.selective.visible_profile import LARGEST_EPSILON

_STEP = 0.04
_TAIL = 13.0


def scored_profile(law: LikelihoodRatio, corners: Corners) -> Profile:
    """`visible`: the exact profile of a trial that says "rejected", or releases candidate and score.

    Theorem visible-profile, with a E_u[(v (b/a) u - g)_+] in place of (v b - g a)_+ on the accepted side. Each is
    convex in v, so the mean-preserving spread of v bounds the expectation of the largest.
    """
    nodes, weights, tail_mass, tail_mean = mean_preserving_spread(law, _STEP, _TAIL)
    a, ratio = corners.without, np.exp(corners.log_ratio)

    def side(epsilon: Floats, added: bool) -> Floats:
        worst = np.empty_like(epsilon)
        for i, g in enumerate(np.exp(np.minimum(epsilon, LARGEST_EPSILON))):
            accepted = np.zeros_like(nodes)
            everything = np.full_like(nodes, -np.inf)
            for c, score in enumerate(corners.score):
                scale = nodes * ratio[c]
                if added:
                    value = a[c] * scale * score.excess(g / scale)
                    rejected = nodes * corners.record_rest[c] - g * corners.passing_rest[c]
                else:
                    value = a[c] * g * scale * score.shortfall(1.0 / (g * scale))
                    rejected = corners.passing_rest[c] - g * nodes * corners.record_rest[c]
                accepted = np.maximum(accepted, value)
                everything = np.maximum(everything, value + rejected)
            outside = tail_mean if added else tail_mass
            worst[i] = max(float(accepted @ weights), float(everything @ weights)) + outside
        return np.asarray(np.clip(worst * (1.0 + ROUNDING), 0.0, 1.0))

    return Profile(add=lambda epsilon: side(epsilon, True), remove=lambda epsilon: side(epsilon, False))


def composed_profile(first: Profile, second: Profile) -> Profile:
    """The profile of two releases one after the other, from above.

    The second is replaced by a dominating pair with few atoms; given an atom of loss l, the first is at epsilon - l.
    """
    return tabulated(
        Profile(
            add=lambda epsilon: _composed(first, second, epsilon),
            remove=lambda epsilon: _composed(_swapped(first), _swapped(second), epsilon),
        )
    )


def _composed(first: Profile, second: Profile, epsilon: Floats) -> Floats:
    losses, masses, infinity = _atoms(second)
    at = epsilon[:, None] - losses
    divergences = _at_any(first, at.ravel()).reshape(at.shape)
    return np.asarray(np.clip((divergences @ masses + infinity) * (1.0 + ROUNDING), 0.0, 1.0))


def _atoms(profile: Profile) -> tuple[Floats, Floats, float]:
    """A pair that dominates a profile: losses, their masses under the first law, the mass of an infinite loss.

    The curve is joined by chords at uneven places; an atom's mass is g times the change of slope in g = e^epsilon
    there. Less than 0 only by rounding, and then raised.
    """
    up, down = knots_of(profile.add), knots_of(profile.remove)
    g = np.exp(np.concatenate([-down[:0:-1], up]))
    # The divergence minus (1 - g)_+, whose own bend at g = 1 is put back below.
    values = np.concatenate([(np.exp(-down) * profile.remove(down))[:0:-1], profile.add(up)])
    slopes = np.concatenate([[values[0] / g[0]], np.diff(values) / np.diff(g), [0.0]])
    masses = g * np.diff(slopes)
    masses[len(down) - 1] += 1.0
    return np.log(g), np.maximum(masses, 0.0), float(values[-1])


def _swapped(profile: Profile) -> Profile:
    return Profile(add=profile.remove, remove=profile.add)


def _at_any(profile: Profile, epsilon: Floats) -> Floats:
    """The divergence at epsilons of either sign: H_{-e}(P||Q) = 1 - exp(-e) + exp(-e) H_e(Q||P)."""
    size = np.abs(epsilon)
    backwards = -np.expm1(-size) + np.exp(-size) * profile.remove(size)
    return np.where(epsilon >= 0.0, profile.add(size), backwards)

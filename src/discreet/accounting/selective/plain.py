"""The plain Poisson-sampled Gaussian, in the terms of this package."""

from __future__ import annotations

from discreet.accounting.budget import Accounting
from discreet.accounting.events import PoissonGaussian
from discreet.accounting.profiles import Profile, privacy_profile
from discreet.accounting.rdp import rdp_curve
from discreet.accounting.selective.likelihood import Floats, LikelihoodRatio


def plain_event(law: LikelihoodRatio) -> PoissonGaussian:
    """The release whose ratio has this law."""
    return PoissonGaussian(sample_rate=law.sample_rate, noise_multiplier=law.noise_multiplier)


def sampled_rdp(law: LikelihoodRatio, orders: Floats) -> Floats:
    """Its Renyi divergence, the larger direction."""
    return rdp_curve(plain_event(law), orders, Accounting.VISIBLE)


def plain_profile(law: LikelihoodRatio) -> Profile:
    """Its profile."""
    return privacy_profile(plain_event(law), Accounting.VISIBLE)

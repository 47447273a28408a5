"""How far a record can move the tail of the other candidate's score (buffered choice, chosen candidate only)."""

import numpy as np
import pytest
from scipy.stats import norm

from discreet.accounting.selective.choice import chosen_corners
from discreet.accounting.selective.events import BufferedRelease

CASES = [(t, sigma_v) for t in (-2.0, -0.5, 0.0, 0.3, 0.9, 1.4) for sigma_v in (0.35, 0.7, 1.3)]


def largest_ratio_of_tails(threshold, sigma_v, metrics):
    """The largest ratio of P(s < score < threshold) between two of these metrics, over all s."""
    scores = np.concatenate([[-50.0], threshold - np.geomspace(1e-3, 10.0, 200)])
    accepted = norm.cdf((threshold - metrics[:, None]) / (2 * sigma_v))
    tails = accepted - norm.cdf((scores - metrics[:, None]) / (2 * sigma_v))
    return float((tails.max(axis=0) / tails.min(axis=0)).max())


def needed_range(event, ratio):
    """The range of log G_D'/G_D if the weights of the other candidate's batches differ by up to `ratio`."""
    low, high = event.law.mean_range(ratio)
    test = np.log1p(event.gate_rate * (ratio - 1)) - np.log1p(event.gate_rate * (1 / ratio - 1))
    return np.log(high / low) + test


def certified_range(event):
    corners = chosen_corners(event.law, event.choice)
    return np.log(corners.with_record.max() / corners.without.max())


def choice(threshold, sigma_v):
    return BufferedRelease(
        sample_rate=0.3,
        noise_multiplier=1.0,
        gate_rate=0.1,
        gate_multiplier=sigma_v,
        gate_threshold=threshold,
    )


@pytest.mark.parametrize(("threshold", "sigma_v"), CASES)
def test_metrics_anywhere_in_the_clipping_interval_are_covered(threshold, sigma_v):
    event = choice(threshold, sigma_v)
    ratio = largest_ratio_of_tails(threshold, sigma_v, np.linspace(-1, 1, 201))
    assert certified_range(event) >= needed_range(event, ratio) * (1 - 1e-6)


def test_looking_at_the_ends_of_the_interval_only_would_not_cover_them():
    event = choice(0.5, 0.3)
    ends = largest_ratio_of_tails(0.5, 0.3, np.array([-1.0, 1.0]))
    inside = largest_ratio_of_tails(0.5, 0.3, np.linspace(-1, 1, 201))
    assert needed_range(event, ends) < 0.99 * needed_range(event, inside)

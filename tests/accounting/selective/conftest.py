"""Exact divergences of explicit acceptance functions, by quadrature from the definition."""

from types import SimpleNamespace

import numpy as np
import pytest

from discreet.accounting.selective import GatedTrial


def _pair(rate, sigma, without, with_record):
    """Weights under D and D' on a fine grid of the normal variable, for a(y) under D and b(y) under D'."""
    y = np.linspace(-13.0, 14.0 + 1.0 / sigma, 24_001)
    mass = np.exp(-(y**2) / 2.0) / np.sqrt(2.0 * np.pi) * (y[1] - y[0])
    ratio = 1.0 - rate + rate * np.exp(y / sigma - 0.5 / sigma**2)
    return (
        mass * without(y),
        mass * ratio * with_record(y),
        mass * (1 - without(y)),
        mass * ratio * (1 - with_record(y)),
    )


def _renyi(p, q, order):
    """D_order(p || q) of two discrete laws."""
    seen = p > 0.0
    return np.log(np.sum(np.exp(order * np.log(p[seen]) + (1.0 - order) * np.log(q[seen])))) / (order - 1.0)


def _released(rate, sigma, without, with_record):
    """The two laws of an accepted candidate."""
    p, q, _, _ = _pair(rate, sigma, without, with_record)
    return p / p.sum(), q / q.sum()


def _trial(rate, sigma, without, with_record):
    """The two laws of a trial: a candidate, or "rejected" as the last outcome."""
    p, q, p_rest, q_rest = _pair(rate, sigma, without, with_record)
    return np.append(p, p_rest.sum()), np.append(q, q_rest.sum())


def _hockey_stick(p, q, epsilon):
    return np.maximum(p - np.exp(epsilon) * q, 0.0).sum()


def _bang_bang(gate, changes, alone_changes, start, alone_start):
    """a and b for an acceptance that jumps between its two ends at the changes, and so does that of the record."""
    low, high = gate.low, gate.high

    def step(y, places, first):
        return np.where((np.searchsorted(np.sort(places), y) + first) % 2 == 0, low, high)

    def without(y):
        return step(y, changes, start)

    def with_record(y):
        a = without(y)
        return a + gate.sample_rate * (step(y, alone_changes, alone_start) - a)

    return without, with_record


@pytest.fixture(scope="session")
def exact():
    """Laws and divergences of explicit pairs, sharing nothing with the bounds."""
    return SimpleNamespace(
        released=_released, trial=_trial, renyi=_renyi, hockey_stick=_hockey_stick, bang_bang=_bang_bang
    )


def _dpsur(examples, batch, sigma, gate_batch=256, gate_multiplier=1.3, threshold=-1.0):
    return GatedTrial(
        sample_rate=batch / examples,
        noise_multiplier=sigma,
        gate_rate=gate_batch / examples,
        gate_multiplier=gate_multiplier,
        gate_threshold=threshold,
    )


@pytest.fixture(scope="session")
def published():
    """DPSUR's published settings at a claimed epsilon of 1."""
    return {
        "mnist": _dpsur(60000, 1024, 2.0),
        "fmnist": _dpsur(60000, 2048, 4.0),
        "cifar10": _dpsur(50000, 8192, 11.0),
    }

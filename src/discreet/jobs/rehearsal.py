"""How long a run will take, measured on made-up records."""

from __future__ import annotations

import time

from discreet.gradients.engine import GradientEngine
from discreet.gradients.layout import FlatLayout
from discreet.noise.gaussian import add_gaussian_
from discreet.noise.key import RunKey
from discreet.jobs.carry_out import Prepared
from discreet.training.fit import cross_entropy, made_up

_TURNS = 3


def expected_seconds(prepared: Prepared) -> float:
    """The time of the plan's releases, from the best of a few turns with a batch of the expected size."""
    plan = prepared.plan
    engine = GradientEngine(
        prepared.model, cross_entropy, FlatLayout.of(prepared.model), microbatch=prepared.job.microbatch
    )
    inputs, targets = made_up(
        prepared.splits.train, round(plan.sampler.expected_batch_size), engine.layout.device
    )
    rule, out, key = plan.clipping.at(0, plan.releases), engine.layout.zeros(), RunKey.from_seed(0)
    times = []
    for turn in range(_TURNS):
        began = time.perf_counter()
        plan.sampler.draw(key.stream("batch", turn))
        engine.clipped_sum(inputs, targets, rule, out, seed=0)
        add_gaussian_(out, 1.0, key.stream("noise", turn))
        times.append(time.perf_counter() - began)
    return min(times) * plan.releases

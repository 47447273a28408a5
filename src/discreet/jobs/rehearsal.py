"""A job rehearsed: everything that can be refused is refused, and the time is taken on made-up records."""

from __future__ import annotations

import time

from discreet.jobs.carry_out import Prepared
from discreet.noise.gaussian import add_gaussian_
from discreet.noise.key import RunKey
from discreet.training.fit import made_up

_TURNS = 3


def expected_seconds(prepared: Prepared) -> float:
    """The time of the plan's releases, from the best of a few turns with a batch of the expected size."""
    plan = prepared.plan
    engine = prepared.start(None).engine
    inputs, targets = made_up(
        prepared.splits.train, round(plan.sampler.expected_batch_size), engine.layout.device
    )
    rule, out, key = plan.clipping.at(0, plan.releases), engine.layout.zeros(), RunKey.from_seed(0)
    times = []
    for turn in range(_TURNS):
        began = time.perf_counter()
        plan.sampler.draw(key.stream("batch", turn))
        engine.clipped_sum(inputs, targets, rule, out)
        add_gaussian_(out, 1.0, key.stream("noise", turn))
        times.append(time.perf_counter() - began)
    return min(times) * plan.releases

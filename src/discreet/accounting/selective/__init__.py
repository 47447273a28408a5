"""Certified accounting of selective release: gates, choices between candidates, private memory.

Importing this package registers its kinds of events with the accountants.
"""

from discreet.accounting.selective import costs
from discreet.accounting.selective.choice import BufferedChoice
from discreet.accounting.selective.claimed import claimed_epsilon, claimed_rdp, claimed_releases
from discreet.accounting.selective.events import (
    AnnealedTrial,
    BatchGatedTrial,
    BufferedRelease,
    GatedTrial,
    ScoredTrial,
)
from discreet.accounting.selective.gates import Acceptance, AnnealingGate, BatchGate, LossGate
from discreet.accounting.selective.memory import (
    grouped_memory_multiplier,
    memory_multiplier,
    required_noise_multiplier,
)
from discreet.accounting.selective.planner import SelectivePlan, SelectiveRun, plan_run
from discreet.accounting.selective.published import (
    Cost,
    PublishedSetting,
    cost,
    cost_table,
    published_settings,
)
from discreet.accounting.termination import Termination, capped_delta, trial_cap

__all__ = [
    "Acceptance",
    "AnnealedTrial",
    "AnnealingGate",
    "BatchGate",
    "BatchGatedTrial",
    "BufferedChoice",
    "BufferedRelease",
    "Cost",
    "GatedTrial",
    "LossGate",
    "PublishedSetting",
    "ScoredTrial",
    "SelectivePlan",
    "SelectiveRun",
    "Termination",
    "capped_delta",
    "claimed_epsilon",
    "claimed_rdp",
    "claimed_releases",
    "cost",
    "cost_table",
    "costs",
    "grouped_memory_multiplier",
    "memory_multiplier",
    "plan_run",
    "published_settings",
    "required_noise_multiplier",
    "trial_cap",
]

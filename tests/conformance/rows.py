"""Every recipe is a row here: a new recipe adds one line and is held to the whole suite."""

from dataclasses import dataclass, replace

from discreet.accounting import Accounting
from discreet.recipes import (
    DPSGD,
    DPSGDBR,
    DPSRCG,
    DPSUR,
    FODPSGD,
    SADPSGD,
    SMADPSGD,
    DPAdam,
    DPAdamBC,
    DPAdamW,
    DPOptimizer,
    FirstOrder,
    PostFMDPSGD,
)
from discreet.schedules import Cosine, Exponential, Linear, Step

SIZES = {"expected_batch_size": 60, "releases": 12}

# A gate takes what the other recipes spend on noise: a trial of these charges a part of the budget of 8.
TRIALS = {
    "expected_batch_size": 60,
    "releases": 24,
    "learning_rate": 0.5,
    "momentum": 0.5,
    "gate_noise_multiplier": 1.5,
}
LOSSES = {**TRIALS, "gate_batch_size": 60, "gate_clip": 0.01, "gate_threshold": -0.5}


@dataclass(frozen=True)
class Hidden:
    """A recipe that is held to `hidden` accounting."""

    recipe: FirstOrder
    accounting = Accounting.HIDDEN

    @property
    def name(self) -> str:
        return self.recipe.name

    def plan(self, examples, budget):
        return self.recipe.plan(examples, budget, accounting=self.accounting)

    def __replace__(self, **changes):
        return Hidden(replace(self.recipe, **changes))


ROWS = {
    "dp-sgd": DPSGD(**SIZES, learning_rate=1.0, weight_decay=1e-3),
    "dp-adam": DPAdam(**SIZES, learning_rate=0.05),
    "dp-adamw": DPAdamW(**SIZES, learning_rate=0.05, weight_decay=0.1),
    "dp-adambc": DPAdamBC(**SIZES, learning_rate=0.02, floor=1e-4),
    "dp-optimizer": DPOptimizer(**SIZES, torch_optimizer="RMSprop", learning_rate=0.02),
    "dpsur": DPSUR(**LOSSES),
    "dpsgd-br": DPSGDBR(**LOSSES, patience=2, decay_floor=0.8),
    "dpsr-cg": DPSRCG(**{**TRIALS, "gate_noise_multiplier": 5.0}, gate_span=15.0),
    "sa-dp-sgd": SADPSGD(**{**LOSSES, "gate_threshold": 0.0}, patience=3),
    "fo-dp-sgd": FODPSGD(**SIZES, learning_rate=2.0, fresh_weight=0.8),
    "post-fm-dp-sgd": PostFMDPSGD(**SIZES, learning_rate=2.0, fresh_weight=0.8),
    "sma-dp-sgd": SMADPSGD(**SIZES, learning_rate=2.0, fresh_weight=0.8, warm_up=2.0, spectrum_every=3),
    # Gates under the other accounting, and with what they can be combined with.
    "dpsur-hidden": Hidden(DPSUR(**{**LOSSES, "releases": 12})),
    "dpsur-adam": DPSUR(**{**LOSSES, "learning_rate": 0.08}, torch_optimizer="Adam", average=0.5),
    "dpsgd-br-hidden": Hidden(
        DPSGDBR(**{**LOSSES, "releases": 8}, patience=None, progress="accuracy", decay_floor=0.8)
    ),
    "dpsgd-br-buffer-only": DPSGDBR(**LOSSES, buffer_size=3, progress="none"),
    "dpsgd-br-decay-only": DPSGDBR(**LOSSES, buffer_size=1, decay_floor=0.8),
    "dpsr-cg-hidden": Hidden(
        DPSRCG(**{**TRIALS, "releases": 12, "gate_noise_multiplier": 5.0}, gate_span=15.0, reference="public")
    ),
    "sa-dp-sgd-total": SADPSGD(
        **{**LOSSES, "gate_threshold": 0.0}, scores="total", coldness=0.5, cooling=0.5, cooling_every=10
    ),
    # Memories with what they can be combined with.
    "fo-scheduled": FODPSGD(
        **SIZES,
        learning_rate=2.0,
        fresh_weight=0.7,
        window=9,
        kernel="tempered",
        clipping="automatic",
        noise_schedule=Step(start=1.5, every=5, factor=0.7),
        clip_schedule=Exponential(end=0.5),
        average=0.5,
    ),
    "post-fm-adam": PostFMDPSGD(
        **SIZES, learning_rate=0.05, kernel="exponential", recursive=True, torch_optimizer="Adam"
    ),
    "sma-group-wise": SMADPSGD(
        **SIZES,
        learning_rate=2.0,
        fresh_weight=0.5,
        window=3,
        clipping="group-wise",
        groups=3,
        clip_norm=0.6,
        momentum=0.5,
        warm_up=1.0,
        spectrum_every=1,
    ),
    "sma-flat": SMADPSGD(**SIZES, learning_rate=2.0, clipping="flat", window=6, average=0.5),
    # The same recipes with what they can be combined with.
    "layer-wise": DPSGD(**SIZES, learning_rate=1.0, clipping="layer-wise", nesterov=True),
    "automatic": DPSGD(**SIZES, learning_rate=1.0, clipping="automatic", momentum=0.0),
    "averaged": DPAdam(**SIZES, learning_rate=0.05, average=0.9, learning_rate_schedule=Cosine(end=0.1)),
    "scheduled": DPSGD(
        **SIZES,
        learning_rate=1.0,
        noise_schedule=Step(start=1.5, every=5, factor=0.7),
        clip_schedule=Exponential(end=0.5),
        learning_rate_schedule=Linear(end=0.3),
    ),
}

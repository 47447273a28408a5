"""Every recipe is a row here: a new recipe adds one line and is held to the whole suite."""

from discreet.recipes import DPSGD, DPAdam, DPAdamBC, DPAdamW, DPOptimizer
from discreet.schedules import Cosine, Exponential, Linear, Step

SIZES = {"expected_batch_size": 60, "releases": 12}

ROWS = {
    "dp-sgd": DPSGD(**SIZES, learning_rate=1.0, weight_decay=1e-3),
    "dp-adam": DPAdam(**SIZES, learning_rate=0.05),
    "dp-adamw": DPAdamW(**SIZES, learning_rate=0.05, weight_decay=0.1),
    "dp-adambc": DPAdamBC(**SIZES, learning_rate=0.02, floor=1e-4),
    "dp-optimizer": DPOptimizer(**SIZES, torch_optimizer="RMSprop", learning_rate=0.02),
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

"""From a model, records, a recipe and a budget to a private model with its certificate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from discreet.accounting import Accounting, Budget, Certificate
from discreet.data import Description, Records
from discreet.errors import UserError
from discreet.gradients.batches import synthetic_like
from discreet.gradients.engine import GradientEngine
from discreet.gradients.layout import FlatLayout
from discreet.noise.key import RunKey
from discreet.plan import Plan
from discreet.training import checkpoint
from discreet.training.evaluate import PublicData, accuracy
from discreet.training.files import read_json, write_json
from discreet.training.folder import RunFolder
from discreet.training.outcome import Result, conclude
from discreet.training.progress import Listener, Progressing
from discreet.training.run import Data, Run, on_device

if TYPE_CHECKING:
    from discreet.recipes import FirstOrder

Loss = Callable[[Any, Tensor], Tensor]


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """The cross-entropy of each record."""
    return nn.functional.cross_entropy(outputs, targets, reduction="none")

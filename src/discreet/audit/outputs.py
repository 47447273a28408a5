"""What a trained model says of every record, kept on disk for attacks."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from discreet.data import Records
from discreet.errors import CorruptFile, UserError
from discreet.training.files import write_bytes

_AT_ONCE = 512


@dataclass(frozen=True, kw_only=True, eq=False)
class Outputs:
    """The outputs of one model for all records, and which of them it was trained on.

    Attributes:
        logits: [records, classes].
        last_inputs: what went into the last linear layer, [records, width].
        labels: the records' labels.
        member: which records it was trained on.
        accuracy: on its members and on the others.
    """

    logits: Tensor
    last_inputs: Tensor
    labels: Tensor
    member: Tensor

    @property
    def probabilities(self) -> Tensor:
        """What the outputs say of the classes, in float64."""
        return self.logits.double().softmax(dim=1)

    @property
    def accuracy(self) -> tuple[float, float]:
        """The share of right answers on members, and on others."""
        right = (self.logits.argmax(dim=1) == self.labels).double()
        return float(right[self.member].mean()), float(right[~self.member].mean())

    def save(self, path: Path) -> None:
        """Write everything in one move: a file that is there is whole."""
        buffer = io.BytesIO()
        np.savez(buffer, **{name: value.numpy() for name, value in vars(self).items()})
        write_bytes(path, buffer.getvalue(), mode=0o600)

    @classmethod
    def load(cls, path: Path) -> Outputs:
        """What `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                return cls(**{name: torch.from_numpy(stored[name]) for name in stored.files})
        except (OSError, ValueError, TypeError) as error:
            raise CorruptFile(
                f"{path} does not hold a model's outputs; delete it, and it is made again"
            ) from error


@torch.no_grad()
def outputs_of(model: nn.Module, records: Records, member: Tensor) -> Outputs:
    """Ask a model about every record."""
    layers = [each for each in model.modules() if isinstance(each, nn.Linear)]
    if not layers:
        raise UserError("the network has no linear layer at its end; attacks that look at it need one")
    seen: list[Tensor] = []
    handle = layers[-1].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].flatten(1).clone()))
    training, device = model.training, next(model.parameters()).device
    model.eval()
    try:
        logits = [model(inputs.to(device)).cpu().float() for inputs, _ in records.batches(_AT_ONCE)]
    finally:
        handle.remove()
        model.train(training)
    return Outputs(
        logits=torch.cat(logits),
        last_inputs=torch.cat(seen).cpu().float(),
        labels=records.targets,
        member=member,
    )

"""One loss per record, from a model and a loss function."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from discreet.errors import UserError
from discreet.gradients.batches import Batch, batch_size, call_model, map_batch, tensors_of

Loss = Callable[[Any, Any], Tensor]


class RecordLoss:
    """The losses of a batch's records.

    Args:
        model: The network.
        loss: Maps (outputs, targets) to one loss per row, shape [rows].
        views: With augmentation multiplicity, the number of views of each record: inputs and targets are then
            [B, views, ...], and a record's loss is the mean over its views, so that gradients are averaged
            over views before they are clipped. One record then still counts once.
        autocast: The type to which the forward pass is autocast, if any. What is clipped and summed is not.
    """

    def __init__(
        self, model: nn.Module, loss: Loss, views: int | None = None, autocast: torch.dtype | None = None
    ) -> None:
        if views is not None and views < 1:
            raise ValueError(f"views must be at least 1, got {views}")
        self.model, self.loss, self.views, self.autocast = model, loss, views, autocast

    def __call__(self, inputs: Batch, targets: Batch, parameters: dict[str, Tensor] | None = None) -> Tensor:
        """The losses [B], with the model's own parameters or with these in their place."""
        records = batch_size(inputs, targets)
        if self.views is None:
            return self._rows(inputs, targets, records, parameters)
        inputs, targets = (map_batch(self._flattened, batch) for batch in (inputs, targets))
        rows = self._rows(inputs, targets, records * self.views, parameters)
        return rows.reshape(records, self.views).mean(1)

    def _flattened(self, tensor: Tensor) -> Tensor:
        if tensor.dim() < 2 or tensor.shape[1] != self.views:
            raise ValueError(
                f"with views={self.views}, inputs and targets must have shape [B, {self.views}, ...], "
                f"got {tuple(tensor.shape)}"
            )
        return tensor.flatten(0, 1)

    def _rows(self, inputs: Batch, targets: Batch, rows: int, parameters: dict[str, Tensor] | None) -> Tensor:
        device = tensors_of(inputs)[0].device.type
        with torch.autocast(device, dtype=self.autocast or torch.bfloat16, enabled=self.autocast is not None):
            losses = self.loss(call_model(self.model, inputs, parameters), targets)
        if not isinstance(losses, Tensor) or losses.shape != (rows,):
            got = f"shape {tuple(losses.shape)}" if isinstance(losses, Tensor) else type(losses).__name__
            raise UserError(
                f"the loss must give one value per record, shape ({rows},), got {got}: "
                "a loss that mixes records cannot be trained privately (use reduction='none')"
            )
        return losses

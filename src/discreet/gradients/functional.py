"""Per-record gradients by brute force: exact for any module, the fallback and the yardstick."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from discreet.gradients.batches import Batch, map_batch, record_of, tensors_of
from discreet.gradients.layout import FlatLayout
from discreet.gradients.losses import RecordLoss
from discreet.gradients.norms import squared_norms
from discreet.gradients.weighing import Weighing


class PerRecordGradients(ABC):
    """Clipped sums from explicit per-record gradients."""

    def __init__(self, losses: RecordLoss, layout: FlatLayout) -> None:
        self.losses, self.layout = losses, layout

    @abstractmethod
    def gradients(self, inputs: Batch, targets: Batch) -> tuple[dict[str, Tensor], Tensor]:
        """Each parameter's gradients [B, *shape] by name, and the losses [B]."""

    def add_clipped_sum(
        self, inputs: Batch, targets: Batch, weighing: Weighing, out: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Add the clipped sum to the flat `out`; the norms [B, G] and losses [B]."""
        gradients, losses = self.gradients(inputs, targets)
        squared = torch.zeros(len(losses), weighing.group_count, dtype=torch.float64, device=losses.device)
        for name, group in zip(self.layout.names, weighing.groups, strict=True):
            squared[:, group] += squared_norms(gradients[name])
        norms, weights = weighing.weigh(squared)
        broken = ~norms.isfinite().all(dim=1)
        anything_broken = bool(broken.any())
        views = self.layout.views(out)
        for name, group in zip(self.layout.names, weighing.groups, strict=True):
            gradient = gradients[name]
            if anything_broken:
                gradient[broken] = 0
            views[name] += torch.tensordot(weights[:, group].to(gradient.dtype), gradient, dims=1)
        return norms, losses

    def _record_loss(
        self, inputs: Batch, targets: Batch, parameters: dict[str, Tensor] | None = None
    ) -> Tensor:
        inputs, targets = (
            map_batch(lambda tensor: tensor.unsqueeze(0), batch) for batch in (inputs, targets)
        )
        return self.losses(inputs, targets, parameters)[0]


class VectorizedGradients(PerRecordGradients):
    """`torch.func`: the gradient of one record's loss, vectorised over the records."""

    def gradients(self, inputs: Batch, targets: Batch) -> tuple[dict[str, Tensor], Tensor]:
        """Each parameter's gradients [B, *shape] by name, and the losses [B]."""
        parameters = {name: p.detach() for name, p in self.layout.parameters(self.losses.model).items()}

        def record_loss(parameters: dict[str, Tensor], inputs: Batch, targets: Batch) -> Tensor:
            return self._record_loss(inputs, targets, parameters)

        one_record = torch.func.grad_and_value(record_loss)
        vectorized = torch.func.vmap(one_record, in_dims=(None, 0, 0), randomness="different")
        gradients, losses = vectorized(parameters, inputs, targets)
        return gradients, losses.detach()


class LoopedGradients(PerRecordGradients):
    """One record at a time by ordinary autograd: slow, and as plain as can be."""

    def gradients(self, inputs: Batch, targets: Batch) -> tuple[dict[str, Tensor], Tensor]:
        """Each parameter's gradients [B, *shape] by name, and the losses [B]."""
        parameters = self.layout.parameters(self.losses.model)
        rows: list[tuple[Tensor, ...]] = []
        losses: list[Tensor] = []
        for record in range(len(tensors_of(targets)[0])):
            with torch.enable_grad():
                loss = self._record_loss(record_of(inputs, record), record_of(targets, record))
            leaves = list(parameters.values())
            rows.append(torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True))
            losses.append(loss.detach())
        columns = zip(*rows, strict=True)
        return {
            name: torch.stack(column) for name, column in zip(parameters, columns, strict=True)
        }, torch.stack(losses)

"""How much memory one record takes, measured on made-up records."""

import torch
from torch import Tensor

from discreet.gradients.batches import Batch, synthetic_like
from discreet.gradients.layout import FlatLayout
from discreet.gradients.losses import RecordLoss

_RECORDS = 2


def record_bytes(losses: RecordLoss, layout: FlatLayout, inputs: Batch, targets: Batch) -> int:
    """Bytes that one record's activations and its own gradient take; the batch gives shapes only."""
    generator = torch.Generator().manual_seed(0)
    inputs, targets = (synthetic_like(batch, _RECORDS, generator) for batch in (inputs, targets))
    saved: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    parameters = {parameter.untyped_storage().data_ptr() for parameter in losses.model.parameters()}
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            kept = losses(inputs, targets)
        del kept
    activations = sum(size for storage, size in saved.items() if storage not in parameters) // _RECORDS
    gradient = layout.size * torch.empty(0, dtype=layout.dtype).element_size()
    # Activations exist twice (values and their gradients); a record's gradient once more while it is reduced.
    return 2 * activations + 2 * gradient

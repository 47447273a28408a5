"""How much memory one record takes, measured on made-up records."""

import torch
from torch import Tensor

from discreet.gradients.batches import Batch, synthetic_like
from discreet.gradients.losses import RecordLoss

_RECORDS = 2


def activation_bytes(losses: RecordLoss, inputs: Batch, targets: Batch) -> int:
    """Bytes that one record's activations and their gradients take; the batch gives shapes only."""
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
    # Twice: the values and their gradients.
    return max(1, 2 * activations)

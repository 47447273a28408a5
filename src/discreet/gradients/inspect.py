"""Refuse, before training, models and losses in which one record's gradient depends on other records."""

import torch
from torch import Tensor, nn

from discreet.errors import UserError
from discreet.gradients.batches import Batch, map_batch, synthetic_like, tensors_of
from discreet.gradients.losses import RecordLoss

_PROBE_RECORDS = 4


def refuse_mixing_modules(model: nn.Module) -> None:
    """Refuse layers that are known to mix the records of a batch or to keep statistics of private records."""
    for name, module in model.named_modules():
        where = f"{name or 'the model'} ({type(module).__name__})"
        if isinstance(module, nn.modules.instancenorm._InstanceNorm):
            if module.track_running_stats:
                raise UserError(
                    f"{where} keeps running statistics of private records: set track_running_stats=False"
                )
        elif isinstance(module, nn.modules.batchnorm._BatchNorm):
            raise UserError(f"{where} mixes the records of a batch: use nn.GroupNorm instead")


def refuse_random_modules(model: nn.Module) -> None:
    """Refuse layers that draw random numbers in their forward pass, such as dropout.

    Torch draws them for the whole batch at once: which mask a record gets depends on the records before it. One
    record more would change what all others contribute, by far more than any clip norm.
    """
    for name, module in model.named_modules():
        if module.training and _draws(module):
            raise UserError(
                f"{name or 'the model'} ({type(module).__name__}) draws random numbers, and what a record draws "
                "depends on who else is in the batch: set its probability to 0"
            )


def _draws(module: nn.Module) -> bool:
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return module.p > 0
    if isinstance(module, nn.RNNBase | nn.MultiheadAttention):
        return module.dropout > 0
    return isinstance(module, nn.RReLU)


def probe_independence(losses: RecordLoss, inputs: Batch, targets: Batch) -> None:
    """Refuse a model or loss for which a record's loss changes when the other records do.

    The batch gives shapes and types only; the probe runs on made-up records, so it looks at nothing private.
    It can miss mixing that random inputs do not show, which is why known layers are refused by name
    beforehand.
    """
    generator = torch.Generator().manual_seed(0)
    first = _Probe(losses, inputs, targets, generator)
    second = first.with_other_records(generator)
    alone, changed = first.losses(), second.losses()
    scale = float(alone.abs().max().nan_to_num(0.0)) + 1e-12
    difference = float((alone[0] - changed[0]).abs().nan_to_num(0.0))
    if difference > 1e-5 * scale:
        raise UserError(
            "a record's loss changes when the other records of the batch change: "
            "the model or the loss mixes records and cannot be trained privately"
        )


def _random_state() -> list[Tensor]:
    """The state of torch's generators."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *cuda]


class _Probe:
    """The losses of made-up records, with the model's state left as it was."""

    def __init__(self, losses: RecordLoss, inputs: Batch, targets: Batch, generator: torch.Generator) -> None:
        self._losses = losses
        self.inputs = synthetic_like(inputs, _PROBE_RECORDS, generator)
        self.targets = synthetic_like(targets, _PROBE_RECORDS, generator)

    def with_other_records(self, generator: torch.Generator) -> "_Probe":
        """The same record 0 among others."""
        other = _Probe(self._losses, self.inputs, self.targets, generator)

        def graft(theirs: Batch, ours: Batch) -> Batch:
            kept = iter([tensor[0] for tensor in tensors_of(ours)])

            def one(tensor: Tensor) -> Tensor:
                tensor = tensor * 3 if tensor.is_floating_point() else tensor
                tensor[0] = next(kept)
                return tensor

            return map_batch(one, theirs)

        other.inputs, other.targets = graft(other.inputs, self.inputs), graft(other.targets, self.targets)
        return other

    def losses(self) -> Tensor:
        """One loss per record."""
        before = {name: buffer.clone() for name, buffer in self._losses.model.named_buffers()}
        try:
            state = _random_state()
            with torch.no_grad():
                losses = self._losses(self.inputs, self.targets)
            if not all(now.equal(then) for now, then in zip(_random_state(), state, strict=True)):
                raise UserError(
                    "the model draws random numbers in its forward pass, and what a record draws depends on who else "
                    "is in the batch: it cannot be trained privately"
                )
            for name, buffer in self._losses.model.named_buffers():
                if not torch.equal(buffer, before[name]):
                    raise UserError(
                        f"the buffer {name} changes in the forward pass: "
                        "statistics of private records would be released without noise"
                    )
        finally:
            for name, buffer in self._losses.model.named_buffers():
                buffer.copy_(before[name])
        return losses

"""The released model as a file that needs neither this library nor pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save as to_bytes
from torch import nn

from discreet.training.files import write_bytes


def save_model(path: Path, model: nn.Module, *, facts: dict[str, Any]) -> None:
    """Write the model's state dictionary as safetensors.

    `safetensors.torch.load_file(path)` gives what `model.load_state_dict` takes. Tied weights are written under each
    of their names. The facts (how to build the network again, the epsilon) go into the header as JSON.
    """
    tensors = {
        name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()
    }
    metadata = {"format": "pt", "discreet": json.dumps(facts)}
    write_bytes(path, to_bytes(tensors, metadata))

"""Checkpoints: one file, no pickle, whole or absent, checked when read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from discreet.errors import CorruptFile, UserError
from discreet.training.files import write_bytes
from discreet.training.fingerprint import fingerprint
from discreet.training.state import TrainState

_VERSION = 3
_REMEMBERED = "remembered."


def save(path: Path, state: TrainState, *, plan: str, facts: dict[str, Any]) -> None:
    """Write the state after a release.

    Args:
        path: the file; an older checkpoint in its place is replaced in one move.
        state: what to save.
        plan: the digest of the plan that the state belongs to.
        facts: further plain values that a resumed run needs (which kernels were chosen, how many threads).
    """
    tensors = {"parameters": state.parameters}
    if state.average is not None:
        tensors["average"] = state.average
    if state.selection is not None:
        tensors["waiting"] = state.selection.waiting
    if state.recollection is not None:
        kept = state.recollection.tensors()
        tensors.update({f"{_REMEMBERED}{name}": tensor for name, tensor in kept.items()})
    optimizer = _take_apart(state.optimizer.state_dict(), "optimizer", tensors)
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    record = {
        "version": _VERSION,
        "plan": plan,
        "releases": state.releases,
        "updates": state.updates,
        "selection": None if state.selection is None else state.selection.to_json(),
        "remembered": None if state.recollection is None else state.recollection.remembered,
        "optimizer": optimizer,
        "facts": facts,
    }
    metadata = {"discreet": json.dumps(record), "digest": _digest(tensors, json.dumps(record))}
    # To bytes first: what writes them then reports a full disk as the operating system does.
    write_bytes(path, to_bytes(tensors, metadata), mode=0o600)


def load(path: Path, state: TrainState, *, plan: str) -> dict[str, Any]:
    """Fill `state` from a checkpoint of the same plan and give back its `facts`."""
    tensors, record = _read(path)
    if record["version"] != _VERSION:
        raise UserError(
            f"{path} is a checkpoint of format {record['version']}; this version reads {_VERSION}"
        )
    if record["plan"] != plan:
        raise UserError(
            f"{path} belongs to another plan; a run is resumed with the settings that it began with"
        )
    if tensors["parameters"].shape != state.parameters.shape:
        raise UserError(
            f"{path} holds {tensors['parameters'].numel()} parameters, the model has {state.parameters.numel()}"
        )
    state.parameters.copy_(tensors["parameters"])
    if state.average is not None:
        state.average.copy_(tensors["average"])
    state.optimizer.load_state_dict(_put_together(record["optimizer"], tensors))
    if state.selection is not None:
        state.selection.load(record["selection"], tensors["waiting"])
    if state.recollection is not None:
        kept = {name: tensors[f"{_REMEMBERED}{name}"] for name in state.recollection.tensors()}
        state.recollection.load(record["remembered"], kept)
    state.releases, state.updates = record["releases"], record["updates"]
    return dict(record["facts"])


def peek(path: Path) -> dict[str, Any]:
    """The `facts` of a checkpoint, and its number of releases under "releases"."""
    _, record = _read(path)
    return {**record["facts"], "releases": record["releases"]}


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        text = metadata["discreet"]
        if metadata["digest"] != _digest(tensors, text):
            raise CorruptFile(f"{path} is damaged: its contents do not match its digest")
        return tensors, json.loads(text)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; there is no checkpoint to resume from") from None
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise CorruptFile(f"{path} is not a checkpoint of this library ({error})") from None


def _digest(tensors: dict[str, Tensor], text: str) -> str:
    return fingerprint(sorted(tensors.items()), start=text)


def _take_apart(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Replace the tensors inside nested plain values by their names, and keep the types that JSON would lose."""
    if isinstance(value, Tensor):
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, dict):
        return {"dict": [[key, _take_apart(item, f"{name}.{key}", tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        items = [_take_apart(item, f"{name}.{index}", tensors) for index, item in enumerate(value)]
        return {type(value).__name__: items}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise UserError(f"the optimizer keeps {name} as a {type(value).__name__}, which a checkpoint cannot hold")


def _put_together(record: Any, tensors: dict[str, Tensor]) -> Any:
    ((kind, content),) = record.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {key: _put_together(item, tensors) for key, item in content}
    if kind in ("list", "tuple"):
        items = [_put_together(item, tensors) for item in content]
        return items if kind == "list" else tuple(items)
    return content

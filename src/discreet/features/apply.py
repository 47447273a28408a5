"""Records turned into features, once, and kept on disk."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data import Records, Splits
from discreet.data.folders import cache_folder
from discreet.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from discreet.features.feature_map import FeatureMap

_VERSION = 1
"""Goes up when a map computes something else under the same name and options."""
_AT_ONCE = 64


def feature_cache() -> Path:
    """The folder that computed features are kept in."""
    return cache_folder() / "features"


def apply(feature_map: FeatureMap, splits: Splits, *, cache: Path | None = None) -> Splits:
    """The same splits with features for inputs.

    Args:
        feature_map: the features.
        splits: the records.
        cache: a folder where features are kept and found again, by a key of the inputs' content, the map and its
            constants. What lies there says as much as the records do; its files can be read by their owner alone.
            Without one they are kept in memory.
    """
    public = None if splits.public is None else of_records(feature_map, splits.public, cache=cache)
    return replace(splits, train=of_records(feature_map, splits.train, cache=cache), public=public)


def of_records(feature_map: FeatureMap, records: Records, *, cache: Path | None = None) -> Records:
    """As `apply`, for one set of records."""
    import torch

    form = records.description
    function = feature_map.made_for(form)
    shape = tuple(function(records.batch(torch.tensor([0]))[0]).shape[1:])
    description = replace(
        form,
        input_shape=shape,
        input_dtype="float32",
        vocabulary=None,
        schema={"kind": "features", **feature_map.schema(), "of": dict(form.schema)},
    )
    rows = (len(records), *shape)
    if cache is None:
        import numpy as np

        found = np.empty(rows, np.float16)
        _compute(function, records, found)
    else:
        found = _cached(function, records, rows, cache / f"{_key(description.schema, records)}.npy")
    return Records(StoredFeatures(found), records.targets, description)


class StoredFeatures:
    """An `InputStore` over features held as float16, in memory or in a file."""

    def __init__(self, features: NDArray[np.float16]) -> None:
        self.features = features

    def __len__(self) -> int:
        return len(self.features)

    def gather(self, indices: Tensor) -> Tensor:
        """The features at `indices` as float32."""
        import torch

        return torch.from_numpy(self.features[indices.numpy()]).float()


def _compute(function: Callable[[Tensor], Tensor], records: Records, out: NDArray[np.float16]) -> None:
    import torch

    start = 0
    with torch.no_grad():
        for inputs, _ in records.batches(_AT_ONCE):
            features = function(inputs).half()
            if not bool(features.isfinite().all()):
                raise UserError(
                    f"{records.description.name}: features of a record among {start} to {start + len(inputs) - 1} are "
                    "too large for 16 bits; scale the inputs to about 1 with public constants"
                )
            out[start : start + len(inputs)] = features.numpy()
            start += len(inputs)


def _cached(
    function: Callable[[Tensor], Tensor], records: Records, rows: tuple[int, ...], path: Path
) -> NDArray[np.float16]:
    """The features from their file, which is made if it is not there, or not whole."""
    import numpy as np

    if (found := _whole(path, rows)) is not None:
        return found
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # A name of its own until it is complete: an interrupted computation leaves nothing that looks like features.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    os.close(descriptor)
    part = Path(name)
    try:
        out = np.lib.format.open_memmap(part, mode="w+", dtype=np.float16, shape=rows)
        _compute(function, records, out)
        out.flush()
        del out
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    found = _whole(path, rows)
    assert found is not None, "what was just written is there"
    return found


def _whole(path: Path, rows: tuple[int, ...]) -> NDArray[np.float16] | None:
    import numpy as np

    try:
        found: NDArray[np.float16] = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return None
    return found if found.shape == rows and found.dtype == np.float16 else None


def _key(schema: Any, records: Records) -> str:
    """A digest of the map with its constants and of every input."""
    text = json.dumps({"version": _VERSION, "schema": schema}, sort_keys=True)
    digest = hashlib.blake2b(text.encode(), digest_size=20)
    for inputs, _ in records.batches(4096):
        digest.update(f"{inputs.dtype} {tuple(inputs.shape)}".encode())
        digest.update(inputs.contiguous().numpy().data)
    return digest.hexdigest()

"""Refusals of bad records: one clear message each, before anything is trained or charged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
    from torch import Tensor

ROWS_AT_ONCE = 65_536


def array(values: ArrayLike | Tensor, *, name: str, kinds: str = "biuf") -> NDArray[Any]:
    """Values as an array of the given NumPy kinds, real numbers by default; refuses ragged rows."""
    import numpy as np
    import torch

    try:
        found = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    except ValueError as error:
        raise UserError(f"{name} have rows of different lengths") from error
    if found.ndim < 1:
        raise UserError(f"{name} are a single value; they must have one row for each record")
    if found.dtype.kind not in kinds:
        raise UserError(
            f"{name} are of type {found.dtype}; they must be plain numbers, one row for each record"
        )
    return found


def integer_labels(labels: NDArray[Any], *, name: str) -> NDArray[np.int64]:
    """Labels as int64; refuses text, fractions, missing values and more than one label per record."""
    import numpy as np

    if labels.ndim != 1:
        raise UserError(f"{name}: targets have shape {labels.shape}; they must be one label per record")
    if labels.dtype.kind not in "biuf":
        raise UserError(
            f"{name}: targets are of type {labels.dtype}; they must be whole numbers counted from 0"
        )
    if labels.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(labels) | (labels != np.floor(labels)))
        if bad.size:
            row = int(bad[0])
            raise UserError(
                f"{name}: the label of record {row} is {labels[row]}; labels must be whole numbers"
            )
    return labels.astype(np.int64)


def labels_in_range(targets: Tensor, classes: int, *, name: str) -> None:
    """Refuses a label outside 0 to classes - 1."""
    bad = ((targets < 0) | (targets >= classes)).nonzero()
    if len(bad):
        row = int(bad[0])
        raise UserError(
            f"{name}: record {row} has label {int(targets[row])}; "
            f"with {classes} classes labels must be 0 to {classes - 1}"
        )


def finite_inputs(inputs: Tensor, *, name: str, first_row: int = 0) -> None:
    """Refuses a NaN or an infinity, naming its row and column."""
    import torch

    for start in range(0, len(inputs), ROWS_AT_ONCE):
        rows = inputs[start : start + ROWS_AT_ONCE].flatten(1)
        finite = torch.isfinite(rows)
        if not bool(finite.all()):
            row, column = (int(place) for place in (~finite).nonzero()[0])
            raise UserError(
                f"{name}: the input of record {first_row + start + row} is {float(rows[row, column])} "
                f"at column {column}; inputs must be finite numbers (clean or fill missing values first)"
            )


def tokens_in_range(inputs: Tensor, vocabulary: int, *, name: str) -> None:
    """Refuses a token id outside 0 to vocabulary - 1."""
    bad = ((inputs < 0) | (inputs >= vocabulary)).flatten(1).nonzero()
    if len(bad):
        row, column = (int(place) for place in bad[0])
        raise UserError(
            f"{name}: record {row} has token id {int(inputs[row].flatten()[column])} at position {column}; "
            f"with a vocabulary of {vocabulary} ids must be 0 to {vocabulary - 1}"
        )


def trainable(targets: Tensor, *, name: str) -> None:
    """Refuses records that nothing can be learned from: fewer than two, or all of one class."""
    if len(targets) < 2:
        raise UserError(f"{name}: {len(targets)} record(s); training needs at least 2")
    if bool((targets == targets[0]).all()):
        raise UserError(
            f"{name}: all {len(targets)} records have label {int(targets[0])}; "
            "training a classifier needs at least two classes"
        )

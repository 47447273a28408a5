"""Data sets of PyTorch and of Hugging Face as records, without depending on either's packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.data.records import Records
from discreet.data.text import HashedWords
from discreet.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor


def from_torch_dataset(
    dataset: Any,
    *,
    name: str | None = None,
    classes: int | None = None,
    vocabulary: int | None = None,
    size_is_public: bool = False,
) -> Records:
    """The records of a map-style data set whose items are (input, label), torchvision's among them.

    Every item is read once into memory. A data set that draws random augmentations would therefore be frozen
    as it happens to come out: give it without them.

    Args:
        dataset: Has a length and items 0 to length - 1.
        name: What to call it; its class name if left out.
        classes: Number of classes; left out, it is read off the labels and the description says so.
        vocabulary: Number of token ids, where inputs are tokens.
        size_is_public: Declares that the number of records may be published.
    """
    import torch

    name = name or type(dataset).__name__
    try:
        count = len(dataset)
    except TypeError as error:
        raise UserError(f"{name} has no length; records must be countable to be sampled") from error
    inputs, labels = [], []
    for index in range(count):
        item = dataset[index]
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise UserError(f"{name}: item {index} is no pair of input and label")
        inputs.append(_tensor(item[0], name, index))
        labels.append(item[1])
    shapes = {tuple(each.shape) for each in inputs}
    if len(shapes) > 1:
        raise UserError(
            f"{name}: inputs have different shapes, among them {sorted(shapes)[:2]}; make them one"
        )
    if not inputs:
        raise UserError(f"{name}: there are no records")
    return Records.from_arrays(
        torch.stack(inputs),
        labels,
        name=name,
        classes=classes,
        vocabulary=vocabulary,
        size_is_public=size_is_public,
    )


def from_hugging_face(
    dataset: Any,
    *,
    inputs: str,
    target: str = "label",
    name: str | None = None,
    classes: int | None = None,
    words: HashedWords | None = None,
    size_is_public: bool = False,
) -> Records:
    """The records of one split of a Hugging Face data set.

    Args:
        dataset: A split: has `column_names`, and a column by its name. `features[target].names`, if it is
            there, is what its publisher declares the classes to be, and is taken as public.
        inputs: The column of inputs: texts, images of one size, numbers, or lists of numbers of one length.
        target: The column of labels, whole numbers from 0.
        name: What to call it.
        classes: Number of classes, where the data set does not declare them.
        words: How texts become token ids.
        size_is_public: Declares that the number of records may be published.
    """
    name = name or "hugging-face"
    there = list(dataset.column_names)
    for column in (inputs, target):
        if column not in there:
            raise UserError(f"{name} has no column {column!r}; it has {', '.join(there)}")
    rows, labels = list(dataset[inputs]), list(dataset[target])
    declared = getattr(getattr(dataset, "features", {}).get(target), "names", None)
    class_names = tuple(declared or ())
    if not rows or not isinstance(rows[0], str):
        return Records.from_arrays(
            [_tensor(row, name, index).numpy() for index, row in enumerate(rows)],
            labels,
            name=name,
            classes=classes,
            class_names=class_names,
            size_is_public=size_is_public,
        )
    words = words or HashedWords()
    records = Records.from_arrays(
        words.encode(rows),
        labels,
        name=name,
        classes=classes,
        class_names=class_names,
        vocabulary=words.vocabulary,
        size_is_public=size_is_public,
    )
    return records.with_schema(words.schema())


def _tensor(value: Any, name: str, index: int) -> Tensor:
    import numpy as np
    import torch

    try:
        return value if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value))
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"{name}: the input of record {index} cannot become a tensor: {error}") from error

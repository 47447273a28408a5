"""Records in a form that can be gathered by index, fast, and that says what it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from discreet.data import checks
from discreet.data.description import Description
from discreet.data.pixels import Pixels
from discreet.errors import UserError

if TYPE_CHECKING:
    import torch
    from numpy.typing import ArrayLike
    from torch import Tensor

Declared = Literal["public", "non-private holdout"]


class InputStore(Protocol):
    """Inputs that are made when they are asked for: scaled pixels, files of a folder, somebody's data set."""

    def __len__(self) -> int:
        """Number of records."""
        ...

    def gather(self, indices: Tensor) -> Tensor:
        """The inputs at `indices`, stacked; always finite."""
        ...


class Records:
    """Inputs and targets of one split.

    Args:
        inputs: A tensor with one row per record, or an `InputStore` that makes rows when asked.
        targets: int64 labels, 0 to classes - 1.
        description: The form of the records; what is stored must agree with it.

    Raises:
        UserError: Lengths differ, labels are out of range, or inputs are not finite or of another form.
    """

    def __init__(self, inputs: Tensor | InputStore, targets: Tensor, description: Description) -> None:
        self.targets = targets
        self.description = description
        self._store = inputs
        self._check()

    @classmethod
    def from_arrays(
        cls,
        inputs: ArrayLike | Tensor,
        targets: ArrayLike | Tensor,
        *,
        name: str = "arrays",
        classes: int | None = None,
        class_names: tuple[str, ...] = (),
        vocabulary: int | None = None,
        size_is_public: bool = False,
    ) -> Records:
        """Records of arrays or tensors already in numeric form.

        Args:
            inputs: One row per record. Numbers become float32, token ids int64. Images of bytes (uint8 with a
                channel axis first, last or not at all) are scaled to [-1, 1].
            targets: Whole numbers from 0, one per record.
            name: What to call the data set.
            classes: Number of classes. Left out, it is the greatest label + 1, a fact read off the records,
                and the description says so.
            class_names: Names of the classes; public.
            vocabulary: Number of token ids, where inputs are tokens.
            size_is_public: Declares that the number of records may be published.
        """
        import numpy as np
        import torch

        raw = checks.array(inputs, name=f"{name}: inputs", kinds="biuf" if vocabulary is None else "biu")
        raw_labels = checks.array(targets, name=f"{name}: targets", kinds="biufUS")
        labels = torch.from_numpy(checks.integer_labels(raw_labels, name=name))
        rows: Tensor | Pixels
        if vocabulary is None and raw.dtype == np.uint8 and raw.ndim in (3, 4):
            rows = Pixels.of_array(raw)
            shape, schema = tuple(rows.images.shape[1:]), rows.scale.schema()
        else:
            rows = torch.from_numpy(np.ascontiguousarray(raw, np.float32 if vocabulary is None else np.int64))
            shape, schema = tuple(rows.shape[1:]), {"kind": "arrays"}
        public_facts: tuple[str, ...] = ("the shape and type of the inputs",)
        private_facts: tuple[str, ...] = ()
        if classes is None and class_names:
            classes = len(class_names)
        if classes is None:
            classes = max(2, int(labels.max()) + 1 if len(labels) else 2)
            private_facts = ("the number of classes is the greatest label + 1",)
        else:
            public_facts += ("the number of classes",)
        description = Description(
            name=name,
            classes=classes,
            class_names=class_names,
            input_shape=shape,
            input_dtype="float32" if vocabulary is None else "int64",
            vocabulary=vocabulary,
            schema=schema,
            size_is_public=size_is_public,
            public_facts=public_facts,
            private_facts=private_facts,
        )
        return cls(rows, labels, description)

    def __len__(self) -> int:
        return len(self.targets)

    def __repr__(self) -> str:
        return f"Records({self.description.name!r}, input_shape={self.description.input_shape})"

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets at `indices` (int64, in any order, possibly none)."""
        return self._gather(indices), self.targets.index_select(0, indices)

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """All records in order, `size` at a time: for evaluation on public records."""
        import torch

        for start in range(0, len(self), size):
            yield self.batch(torch.arange(start, min(start + size, len(self))))

    @cached_property
    def inputs(self) -> Tensor:
        """All inputs as one tensor; a store that makes rows when asked is read through once and kept."""
        import torch

        return (
            self._gather(torch.arange(len(self)))
            if not isinstance(self._store, torch.Tensor)
            else self._store
        )

    def select(self, indices: Tensor, *, name: str | None = None) -> Records:
        """The records at `indices`, as records of their own."""
        import torch

        chosen: Tensor | InputStore = (
            _Chosen(self._store, indices)
            if not isinstance(self._store, torch.Tensor)
            else self._store.index_select(0, indices)
        )
        form = self.description if name is None else self.description.renamed(name)
        return Records(chosen, self.targets.index_select(0, indices), form)

    def with_schema(self, schema: Mapping[str, Any]) -> Records:
        """The same records, said to have become what they are by another schema."""
        return Records(self._store, self.targets, replace(self.description, schema=schema))

    def require_trainable(self) -> None:
        """Refuses fewer than two records, or records all of one class."""
        checks.trainable(self.targets, name=self.description.name)

    def _gather(self, indices: Tensor) -> Tensor:
        import torch

        if isinstance(self._store, torch.Tensor):
            return self._store.index_select(0, indices)
        return self._store.gather(indices)

    def _check(self) -> None:
        import torch

        name, form = self.description.name, self.description
        if self.targets.dtype != torch.int64 or self.targets.ndim != 1:
            raise ValueError(
                f"targets are {self.targets.dtype} of {self.targets.ndim} dimensions; need int64, 1"
            )
        if len(self._store) != len(self.targets):
            raise UserError(f"{name}: {len(self._store)} inputs but {len(self.targets)} targets")
        if not len(self.targets):
            raise UserError(f"{name}: there are no records")
        checks.labels_in_range(self.targets, form.classes, name=name)
        one = self._gather(torch.zeros(1, dtype=torch.int64))
        if tuple(one.shape[1:]) != form.input_shape or one.dtype != _dtype(form.input_dtype):
            raise ValueError(
                f"inputs are {one.dtype} of shape {tuple(one.shape[1:])}; "
                f"the description says {form.input_dtype} of shape {form.input_shape}"
            )
        if isinstance(self._store, torch.Tensor):
            if form.vocabulary is None:
                checks.finite_inputs(self._store, name=name)
            else:
                checks.tokens_in_range(self._store, form.vocabulary, name=name)


@dataclass(frozen=True, kw_only=True, eq=False)
class Splits:
    """Private records to train on and, if there are any, records that progress may be shown on.

    **Guarantee.** Only `train` is protected. `public` is looked at without noise or charge, which is sound
    only because somebody declares it public, or gives up its privacy as a holdout; `declared` says which.
    """

    train: Records
    public: Records | None = None
    declared: Declared | None = None

    def __post_init__(self) -> None:
        self.train.require_trainable()
        if (self.public is None) != (self.declared is None):
            raise ValueError("an evaluation split must be declared 'public' or 'non-private holdout'")
        if self.declared is not None and self.declared not in get_args(Declared):
            raise ValueError(f"declared is {self.declared!r}; it must be one of {get_args(Declared)}")
        if self.public is not None and self.public.description.schema_hash != self.description.schema_hash:
            raise UserError(
                f"{self.description.name}: the evaluation split has another schema than the training records"
            )

    @property
    def description(self) -> Description:
        """Description of the training records."""
        return self.train.description


def hold_out(records: Records, *, every: int = 5) -> Splits:
    """Gives up the privacy of every `every`-th record to show progress on; the rest stays private.

    The rule looks at a record's number only, so which records are given up says nothing about the others.
    """
    import torch

    if every < 2:
        raise ValueError(f"every is {every}; it must be at least 2")
    given_up = torch.arange(len(records)) % every == every - 1
    if not bool(given_up.any()):
        raise UserError(
            f"{records.description.name}: {len(records)} records are too few to hold out every {every}th"
        )
    return Splits(
        train=records.select((~given_up).nonzero().flatten()),
        public=records.select(given_up.nonzero().flatten(), name=f"{records.description.name} holdout"),
        declared="non-private holdout",
    )


class _Chosen:
    """Some rows of another store."""

    def __init__(self, store: InputStore, indices: Tensor) -> None:
        self._store = store
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def gather(self, indices: Tensor) -> Tensor:
        return self._store.gather(self._indices.index_select(0, indices))


def _dtype(name: str) -> torch.dtype:
    import torch

    return {"float32": torch.float32, "int64": torch.int64}[name]

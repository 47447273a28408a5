"""What is known of a data set, and how it came to be known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

TASKS = ("classification",)
DTYPES = ("float32", "int64")


@dataclass(frozen=True, kw_only=True)
class Description:
    """The public face of a set of records.

    **Guarantee.** What was read off private records (a number of classes, the names of folders) is listed
    word for word in `private_facts`, so that no such fact enters a certificate unnoticed. The schema hash
    covers the schema and never a record.

    Attributes:
        name: What people call the data set.
        classes: Number of classes; targets are 0 to classes - 1.
        input_shape: Shape of one record's input.
        input_dtype: "float32", or "int64" for token ids.
        schema: How raw records become inputs (columns and bounds, scaling of pixels, hashing of words).
        class_names: Names of the classes in the order of the targets, or empty.
        vocabulary: Number of token ids where inputs are tokens.
        size_is_public: Whether the number of records may be published.
        public_facts: Sentences on what was known, or declared, without looking at private records.
        private_facts: Sentences on what was read off private records without noise and is not charged.
        task: "classification".
    """

    name: str
    classes: int
    input_shape: tuple[int, ...]
    input_dtype: Literal["float32", "int64"] = "float32"
    schema: Mapping[str, Any] = field(default_factory=dict, hash=False)
    class_names: tuple[str, ...] = ()
    vocabulary: int | None = None
    size_is_public: bool = False
    public_facts: tuple[str, ...] = ()
    private_facts: tuple[str, ...] = ()
    task: Literal["classification"] = "classification"

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ValueError(f"task is {self.task!r}; it must be one of {', '.join(TASKS)}")
        if self.classes < 2:
            raise ValueError(f"classes is {self.classes}; a classifier needs at least 2")
        if self.input_dtype not in DTYPES:
            raise ValueError(f"input_dtype is {self.input_dtype!r}; it must be one of {', '.join(DTYPES)}")
        if any(size < 1 for size in self.input_shape):
            raise ValueError(f"input_shape is {self.input_shape}; every size must be at least 1")
        if self.class_names and len(self.class_names) != self.classes:
            raise ValueError(f"class_names has {len(self.class_names)} names for {self.classes} classes")
        if (self.input_dtype == "int64") != (self.vocabulary is not None):
            raise ValueError("vocabulary must be given for token inputs (int64), and only for them")

    @property
    def schema_hash(self) -> str:
        """SHA-256 of the schema in canonical JSON: the same for any records of the same form."""
        form = {
            "task": self.task,
            "classes": self.classes,
            "class_names": list(self.class_names),
            "input_shape": list(self.input_shape),
            "input_dtype": self.input_dtype,
            "vocabulary": self.vocabulary,
            "schema": self.schema,
        }
        return hashlib.sha256(json.dumps(form, sort_keys=True, allow_nan=False).encode()).hexdigest()

    def renamed(self, name: str) -> Description:
        """The same description under another name."""
        return replace(self, name=name)

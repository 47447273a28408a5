"""What a person declares about records in files, so that it need not be read off the records."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from discreet.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """Public facts about the records of a file or folder. What is left out has a default, or is read off.

    Attributes:
        target: The target column of a table, or the array of targets in an npz file.
        inputs: The array of inputs in an npz file.
        schema: The schema file of a table.
        classes: The classes of an npz file or an image folder: how many, or their names in order.
        image_size: The side that the images of a folder are scaled to.
        channels: 3 to read the images of a folder in colour, 1 for grey.
        size_is_public: Whether the number of records may be published.
    """

    target: str | None = None
    inputs: str | None = None
    schema: Path | None = None
    classes: int | tuple[str, ...] | None = None
    image_size: int | None = None
    channels: int | None = None
    size_is_public: bool = False

    def __post_init__(self) -> None:
        if self.image_size is not None and self.image_size < 1:
            raise UserError(f"image_size is {self.image_size}; it is a number of pixels, at least 1")
        if self.channels not in (None, 1, 3):
            raise UserError(f"channels is {self.channels}; it is 3 for colour or 1 for grey")
        count = len(self.classes) if isinstance(self.classes, tuple) else self.classes
        if count is not None and count < 2:
            raise UserError(f"classes declares {count}; a classifier needs at least 2")
        if isinstance(self.classes, tuple) and len(set(self.classes)) < len(self.classes):
            raise UserError(f"classes is {', '.join(self.classes)}; it names one class twice")

    @property
    def class_count(self) -> int | None:
        """The number of classes, where it is declared."""
        return len(self.classes) if isinstance(self.classes, tuple) else self.classes

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, where they are declared."""
        return self.classes if isinstance(self.classes, tuple) else ()

    def allow(self, *names: str, kind: str) -> None:
        """Refuse what is declared and has no meaning for this kind of data: nothing is passed over in silence."""
        for each in fields(self):
            if getattr(self, each.name) not in (None, False) and each.name not in names:
                raise UserError(
                    f"{each.name} has no meaning for {kind}"
                    + (f", which can have {', '.join(names)}" if names else "")
                    + "; leave it out"
                )


def parse_classes(text: str) -> int | tuple[str, ...]:
    """Classes as people write them on one line: `10`, or `cat,dog,mouse`."""
    if text.strip().isdecimal():
        return int(text)
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UserError(f"classes is {text!r}; write how many there are, or their names with commas between")
    return names

"""Records by what a person typed: a name, a file or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

from discreet.data.named import entry, load, names
from discreet.data.records import Declared, Splits
from discreet.errors import UserError

if TYPE_CHECKING:
    from discreet.data.description import Description
    from discreet.data.records import Records

_TABLES = (".csv", ".csv.gz", ".tsv", ".parquet")


def open_data(
    what: str,
    *,
    folder: Path | None = None,
    target: str | None = None,
    schema: Path | None = None,
    image_size: int = 32,
    public: Path | None = None,
    declared: str | None = None,
    size_is_public: bool = False,
) -> Splits:
    """The records that `what` names.

    Args:
        what: A named data set, a table, an npz file, or a folder of images.
        folder: Where named data sets lie.
        target: The target column of a table.
        schema: The schema file of a table.
        image_size: The side that images of a folder are scaled to.
        public: Records of the same form to take accuracy on.
        declared: What those are: "public" or "non-private holdout".
        size_is_public: Declares that the number of records may be published.
    """
    if what in names():
        if public is not None:
            raise UserError(f"{what} comes with evaluation records of its own; leave --public out")
        return load(what, folder)

    def read(path: Path, classes: int | None = None, class_names: tuple[str, ...] | None = None) -> Records:
        return _read(path, target, schema, image_size, size_is_public, classes, class_names)

    path = Path(what)
    if not path.exists():
        raise UserError(f"{what!r} is neither a file or folder nor one of {', '.join(names())}")
    train = read(path)
    if public is None:
        return Splits(train=train)
    if declared not in get_args(Declared):
        raise UserError(
            f"say what the records in {public} are with --declared: accuracy on them is shown exactly, so they have "
            f"to be {' or '.join(repr(each) for each in get_args(Declared))}"
        )
    form = train.description
    return Splits(train=train, public=read(public, form.classes, form.class_names or None), declared=declared)  # type: ignore[arg-type]


def default_model(what: str, description: Description) -> str:
    """The network for these records when none is asked for."""
    from discreet import models

    if what in names():
        return entry(what).default_model
    return models.default_name(description.input_shape, tokens=description.vocabulary is not None)


def _read(
    path: Path,
    target: str | None,
    schema: Path | None,
    image_size: int,
    size_is_public: bool,
    classes: int | None,
    class_names: tuple[str, ...] | None,
) -> Records:
    if path.is_dir():
        from discreet.data.images import load_image_folder

        return load_image_folder(
            path, size=(image_size, image_size), classes=class_names, size_is_public=size_is_public
        )
    if path.name.endswith(".npz"):
        from discreet.data.npz import load_npz

        return load_npz(path, classes=classes, size_is_public=size_is_public)
    if path.name.endswith(_TABLES):
        from discreet.data.table import load_table

        return load_table(path, schema, target=target, size_is_public=size_is_public)
    raise UserError(
        f"{path} is of no form that can be read: {', '.join((*_TABLES, '.npz'))}, or a folder of images"
    )

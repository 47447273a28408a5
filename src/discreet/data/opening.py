"""Records by what a person typed: a name, a file or a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from discreet.data.declaration import Declaration
from discreet.data.named import entry, load, names
from discreet.data.records import Declared, Splits
from discreet.errors import UserError

if TYPE_CHECKING:
    from discreet.data.description import Description
    from discreet.data.records import Records

_TABLES = (".csv", ".csv.gz", ".tsv", ".parquet")
_IMAGE_SIZE = 32
_COLOUR = 3
_NOTHING = Declaration()


def open_data(
    what: str,
    said: Declaration = _NOTHING,
    *,
    folder: Path | None = None,
    public: Path | None = None,
    declared: str | None = None,
) -> Splits:
    """The records that `what` names.

    Args:
        what: A named data set, a table, an npz file, or a folder of images.
        said: What is declared about a file or folder; a named data set is known.
        folder: Where named data sets lie.
        public: Records of the same form to take accuracy on.
        declared: What those are: "public" or "non-private holdout".

    Raises:
        UserError: There is no such data, it is not what was declared, or something declared has no meaning for it.
    """
    if what in names():
        said.allow(kind=f"{what}, which is known")
        if public is not None or declared is not None:
            raise UserError(f"{what} comes with evaluation records of its own; leave public and declared out")
        return load(what, folder)
    if folder is not None:
        raise UserError(f"data_folder is for the named data sets; {what!r} is none, so leave it out")
    if not what or not Path(what).exists():
        raise UserError(f"{what!r} is neither a file or folder nor one of {', '.join(names())}")
    train = _read(Path(what), said)
    if public is None:
        if declared is not None:
            raise UserError(
                f"declared is {declared!r}, but no public records are given that it could be about"
            )
        return Splits(train=train)
    if declared not in get_args(Declared):
        raise UserError(
            f"say what the records in {public} are with --declared: accuracy on them is shown exactly, so they have "
            f"to be {' or '.join(repr(each) for each in get_args(Declared))}"
        )
    form = train.description
    if not public.name.endswith(_TABLES):
        # The classes of the records to evaluate on are those of the private ones, whichever of them occur.
        said = replace(said, classes=form.class_names or form.classes)
    return Splits(train=train, public=_read(public, said), declared=cast(Declared, declared))


def default_model(what: str, description: Description) -> str:
    """The network for these records when none is asked for."""
    from discreet import models

    if what in names():
        return entry(what).default_model
    return models.default_name(description.input_shape, tokens=description.vocabulary is not None)


def _read(path: Path, said: Declaration) -> Records:
    if path.is_dir():
        return _images(path, said)
    if path.name.endswith(".npz"):
        return _arrays(path, said)
    if path.name.endswith(_TABLES):
        from discreet.data.table import load_table

        said.allow("target", "schema", "size_is_public", kind="a table")
        return load_table(path, said.schema, target=said.target, size_is_public=said.size_is_public)
    if not path.exists():
        raise UserError(f"there is no file {path}")
    raise UserError(
        f"{path} is of no form that can be read: {', '.join((*_TABLES, '.npz'))}, or a folder of images"
    )


def _images(path: Path, said: Declaration) -> Records:
    from discreet.data.images import load_image_folder

    said.allow("classes", "image_size", "channels", "size_is_public", kind="a folder of images")
    if isinstance(said.classes, int):
        raise UserError(
            f"classes is {said.classes}; those of an image folder are declared by the names of its folders: cat,dog"
        )
    side = said.image_size or _IMAGE_SIZE
    return load_image_folder(
        path,
        size=(side, side),
        classes=said.class_names or None,
        channels=said.channels or _COLOUR,
        size_is_public=said.size_is_public,
    )


def _arrays(path: Path, said: Declaration) -> Records:
    from discreet.data.npz import load_npz

    said.allow("target", "inputs", "classes", "size_is_public", kind="an npz file")
    return load_npz(
        path,
        inputs=said.inputs or "inputs",
        targets=said.target or "targets",
        classes=said.class_count,
        class_names=said.class_names,
        size_is_public=said.size_is_public,
    )

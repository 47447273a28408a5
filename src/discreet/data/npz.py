"""NumPy archives with one array of inputs and one of targets. Nothing is unpickled."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from discreet.data.records import Records
from discreet.errors import CorruptFile, UserError


def load_npz(
    path: Path,
    *,
    inputs: str = "inputs",
    targets: str = "targets",
    classes: int | None = None,
    class_names: tuple[str, ...] = (),
    vocabulary: int | None = None,
    name: str | None = None,
    size_is_public: bool = False,
) -> Records:
    """The records of an .npz file.

    Args:
        path: The archive, as `numpy.savez` writes it.
        inputs: Key of the inputs, one row per record. They are taken as they are, only made float32.
        targets: Key of the labels, whole numbers from 0.
        classes: Number of classes; left out, it is read off the labels and the description says so.
        class_names: Names of the classes; public.
        vocabulary: Number of token ids, where inputs are tokens.
        name: What to call the data set; the file's name if left out.
        size_is_public: Declares that the number of records may be published.

    Raises:
        UserError: The file or a key is not there, or an array is not of numbers.
    """
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise UserError(f"{path} holds a single array; write both with numpy.savez")
        with archive:
            for key in (inputs, targets):
                if key not in archive:
                    raise UserError(
                        f"{path} has no array {key!r}; it has {', '.join(archive.files)}: "
                        "say which are meant with inputs and target"
                    )
            rows, labels = archive[inputs], archive[targets]
    except UserError:
        raise
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise CorruptFile(f"{path} cannot be read as .npz of plain numbers: {error}") from error
    return Records.from_arrays(
        rows,
        labels,
        name=name or path.name,
        classes=classes,
        class_names=class_names,
        vocabulary=vocabulary,
        size_is_public=size_is_public,
    )

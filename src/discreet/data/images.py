"""A folder of images with one subfolder per class, read when a batch asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.description import Description
from discreet.data.pixels import PixelScale
from discreet.data.records import Records
from discreet.errors import CorruptFile, UserError

if TYPE_CHECKING:
    from torch import Tensor

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm", ".pgm")


def load_image_folder(
    folder: Path,
    *,
    size: tuple[int, int],
    classes: Sequence[str] | None = None,
    channels: int = 3,
    scale: PixelScale | None = None,
    name: str | None = None,
    size_is_public: bool = False,
) -> Records:
    """The images below `folder`, as FOLDER/CLASS/NAME.png and the like.

    Every image is decoded once here, so that a broken one is refused before training begins, and again
    whenever a batch needs it, so that the whole need not fit into memory.

    Args:
        folder: Holds one folder per class.
        size: Height and width that every image is resized to (public; not taken from the images).
        classes: Names of the class folders in the order of the labels. Left out, they are the names of the
            folders that are there, sorted, a fact read off the records, and the description says so.
        channels: 3 for colour, 1 for grey.
        scale: Public scaling of pixels.
        name: What to call the data set; the folder's name if left out.
        size_is_public: Declares that the number of images may be published.

    Raises:
        UserError: No such folder, no images for a class, a folder that is no class, or a broken image.
    """
    import torch

    if channels not in (1, 3):
        raise ValueError(f"channels is {channels}; it must be 1 or 3")
    if len(size) != 2 or min(size) < 1:
        raise ValueError(f"size is {size}; it must be (height, width), both at least 1")
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    there = sorted(each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    names = tuple(there if classes is None else classes)
    if len(names) < 2:
        raise UserError(
            f"{folder} holds {len(names)} folder(s); it needs one for each of at least two classes"
        )
    for other in sorted(set(there) - set(names)):
        raise UserError(f"{folder} holds a folder {other!r}, which is none of the classes {', '.join(names)}")
    found = [(path, label) for label, each in enumerate(names) for path in _images(folder / each)]
    scale = scale or PixelScale()
    store = ImageFiles([path for path, _ in found], size=size, channels=channels, scale=scale)
    store.check()
    declared = "the size that images are brought to"
    description = Description(
        name=name or folder.name,
        classes=len(names),
        class_names=names,
        input_shape=(channels, *size),
        schema={**scale.schema(), "resized": "bilinear"},
        size_is_public=size_is_public,
        public_facts=(declared,) if classes is None else (declared, "the names of the classes"),
        private_facts=("the names of the classes are those of the folders",) if classes is None else (),
    )
    targets = torch.tensor([label for _, label in found], dtype=torch.int64)
    return Records(store, targets, description)


class ImageFiles:
    """An `InputStore` over image files."""

    def __init__(
        self, paths: Sequence[Path], *, size: tuple[int, int], channels: int, scale: PixelScale
    ) -> None:
        self._paths = list(paths)
        self._size = size
        self._mode = "RGB" if channels == 3 else "L"
        self._scale = scale

    def __len__(self) -> int:
        return len(self._paths)

    def gather(self, indices: Tensor) -> Tensor:
        """The images at `indices`, decoded, resized and scaled."""
        import numpy as np
        import torch

        channels = len(self._mode) if self._mode == "RGB" else 1
        images = np.empty((len(indices), channels, *self._size), dtype=np.uint8)
        for row, index in enumerate(indices.tolist()):
            decoded = np.asarray(_decode(self._paths[index], self._mode, self._size))
            images[row] = decoded.transpose(2, 0, 1) if decoded.ndim == 3 else decoded
        return self._scale.apply(torch.from_numpy(images))

    def check(self) -> None:
        """Refuses the first file that cannot be decoded."""
        for path in self._paths:
            _decode(path, self._mode, self._size)


def _images(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder} for the class {folder.name!r}")
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)
    if not found:
        raise UserError(f"{folder} holds no image ({', '.join(ENDINGS)})")
    return found


def _decode(path: Path, mode: str, size: tuple[int, int]) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise UserError("image folders need Pillow: pip install 'discreet[images]'") from error
    try:
        with Image.open(path) as image:
            return image.convert(mode).resize((size[1], size[0]), Image.Resampling.BILINEAR)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise CorruptFile(f"{path} cannot be read as an image: {error}") from error

"""The data sets that have a name: what they are, where they lie, how they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.data.folders import VARIABLE, maybe_file, roots
from discreet.errors import UserError

if TYPE_CHECKING:
    from discreet.data.records import Splits

IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
CIFAR_10_FILES = (
    *(f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6)),
    "cifar-10-batches-bin/test_batch.bin",
)
IMDB_FOLDERS = tuple(f"aclImdb/{split}/{kind}" for split in ("train", "test") for kind in ("neg", "pos"))
FASHION = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


@dataclass(frozen=True, kw_only=True)
class NamedData:
    """A data set that can be asked for by name.

    Attributes:
        name: The name people type.
        summary: One line for a list of data sets.
        default_model: The model taken when none is asked for.
        subfolders: Where below a root its files may lie; "." is the root itself.
        layouts: Alternative sets of paths: a folder that has all paths of one of them has the data.
            Empty where the data comes with a package.
        gzipped: Whether its files may lie there with .gz as well.
        load: Reads the data from the folder that was found.
    """

    name: str
    summary: str
    default_model: str
    subfolders: tuple[str, ...] = ()
    layouts: tuple[tuple[str, ...], ...] = ()
    gzipped: bool = False
    load: Callable[[Path], Splits]

    def find(self, folder: Path | None = None) -> Path | None:
        """The first folder that holds a whole copy."""
        places = (root / sub for root in roots(folder) for sub in self.subfolders)
        return next((place for place in places if self._complete(place)), None)

    def _complete(self, place: Path) -> bool:
        def there(path: str) -> bool:
            return (place / path).exists() if not self.gzipped else maybe_file(place, path) is not None

        return any(all(there(path) for path in layout) for layout in self.layouts)


def names() -> tuple[str, ...]:
    """All names, in the order of the documentation."""
    return tuple(_REGISTRY)


def entry(name: str) -> NamedData:
    """The entry called `name`.

    Raises:
        UserError: There is none; the message lists all names.
    """
    if name not in _REGISTRY:
        raise UserError(f"there is no data set named {name!r}; there are {', '.join(_REGISTRY)}")
    return _REGISTRY[name]


def load(name: str, folder: Path | None = None) -> Splits:
    """The data set called `name`, from `folder`, $DISCREET_DATA or the cache folder.

    Raises:
        UserError: Unknown name, or the files are not on this machine (they are never downloaded unasked).
    """
    wanted = entry(name)
    if not wanted.layouts:
        return wanted.load(Path())
    found = wanted.find(folder)
    if found is None:
        looked = ", ".join(str(root) for root in roots(folder))
        raise UserError(
            f"{name} is not on this machine (looked below {looked}); "
            f"get it with `discreet data get {name}`, or set {VARIABLE} to the folder that holds it"
        )
    return wanted.load(found)


def _digits(_: Path) -> Splits:
    from discreet.data import digits

    return digits.load()


def _mnist(folder: Path) -> Splits:
    from discreet.data import idx

    return idx.load(folder, name="mnist", class_names=tuple("0123456789"))


def _fashion_mnist(folder: Path) -> Splits:
    from discreet.data import idx

    return idx.load(folder, name="fashion-mnist", class_names=FASHION)


def _cifar_10(folder: Path) -> Splits:
    from discreet.data import cifar

    return cifar.load_10(folder)


def _cifar_100(folder: Path) -> Splits:
    from discreet.data import cifar

    return cifar.load_100(folder)


def _svhn(folder: Path) -> Splits:
    from discreet.data import svhn

    return svhn.load(folder)


def _imdb(folder: Path) -> Splits:
    from discreet.data import imdb

    return imdb.load(folder)


def _adult(folder: Path) -> Splits:
    from discreet.data import adult

    return adult.load(folder)


_REGISTRY = {
    known.name: known
    for known in (
        NamedData(
            name="digits",
            summary="1,797 handwritten digits, 8 x 8, that come with scikit-learn",
            default_model="mlp",
            load=_digits,
        ),
        NamedData(
            name="mnist",
            summary="70,000 handwritten digits, 28 x 28",
            default_model="cnn-mnist",
            subfolders=("mnist", "MNIST/raw"),
            layouts=(IDX_FILES,),
            gzipped=True,
            load=_mnist,
        ),
        NamedData(
            name="fashion-mnist",
            summary="70,000 pictures of clothes, 28 x 28",
            default_model="cnn-mnist",
            subfolders=("fashion-mnist", "FashionMNIST/raw"),
            layouts=(IDX_FILES,),
            gzipped=True,
            load=_fashion_mnist,
        ),
        NamedData(
            name="cifar-10",
            summary="60,000 colour pictures of 10 kinds, 32 x 32",
            default_model="cnn-cifar",
            subfolders=("cifar-10", "."),
            layouts=(CIFAR_10_FILES,),
            load=_cifar_10,
        ),
        NamedData(
            name="cifar-100",
            summary="60,000 colour pictures of 100 kinds, 32 x 32",
            default_model="cnn-cifar",
            subfolders=("cifar-100", "."),
            layouts=(("cifar-100-binary/train.bin", "cifar-100-binary/test.bin"),),
            load=_cifar_100,
        ),
        NamedData(
            name="svhn",
            summary="99,289 house number digits from street views, 32 x 32",
            default_model="cnn-cifar",
            subfolders=("svhn", "."),
            layouts=(("train_32x32.mat", "test_32x32.mat"),),
            load=_svhn,
        ),
        NamedData(
            name="imdb",
            summary="50,000 film reviews, good or bad",
            default_model="bow-imdb",
            subfolders=("imdb", "."),
            layouts=(("imdb_train.jsonl", "imdb_test.jsonl"), IMDB_FOLDERS),
            gzipped=True,
            load=_imdb,
        ),
        NamedData(
            name="adult",
            summary="48,842 rows of the 1994 census, income above 50,000 or not",
            default_model="mlp",
            subfolders=("adult",),
            layouts=(("adult.data", "adult.test"),),
            gzipped=True,
            load=_adult,
        ),
    )
}

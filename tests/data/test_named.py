"""Data sets by name: the real ones where they are, small files of the same form where they are not."""

import gzip
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import savemat

from discreet.data import cifar, idx, imdb, load, named, svhn
from discreet.data.pixels import PixelScale
from discreet.errors import CorruptFile, UserError


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty root for data, the only one there is."""
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "root"


def write_idx(path: Path, array: np.ndarray) -> None:
    head = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    raw = head + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def write_mnist(folder: Path, ending: str = "") -> None:
    folder.mkdir(parents=True)
    for prefix, count in (("train", 30), ("t10k", 10)):
        images = np.random.default_rng(count).integers(0, 256, (count, 28, 28))
        write_idx(folder / f"{prefix}-images-idx3-ubyte{ending}", images)
        write_idx(folder / f"{prefix}-labels-idx1-ubyte{ending}", np.arange(count) % 10)


def write_cifar(folder: Path, paths: tuple[str, ...], label_bytes: int) -> None:
    folder.mkdir(parents=True)
    for number, path in enumerate(paths):
        rows = np.random.default_rng(number).integers(0, 256, (20, label_bytes + 3072)).astype(np.uint8)
        rows[:, :label_bytes] = 99
        rows[:, label_bytes - 1] = np.arange(20) % 10
        (folder / path).write_bytes(rows.tobytes())


@pytest.mark.data
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_the_real_image_sets_are_whole(name: str, data_folder: Path) -> None:
    splits = load(name, data_folder)
    assert splits.public is not None
    assert torch.equal(splits.train.targets.bincount() > 5000, torch.ones(10, dtype=torch.bool))
    assert (len(splits.train), len(splits.public)) == (60_000, 10_000)
    assert splits.declared == "non-private holdout"
    inputs, _ = splits.train.batch(torch.arange(1000))
    assert (inputs.min(), inputs.max()) == (-1.0, pytest.approx(1.0))
    assert splits.description.size_is_public


@pytest.mark.data
def test_the_real_reviews_are_whole_and_have_words(data_folder: Path) -> None:
    splits = load("imdb", data_folder)
    assert splits.public is not None
    for records in (splits.train, splits.public):
        assert records.targets.bincount().tolist() == [12_500, 12_500]
        assert (records.inputs[:, 0] != 0).all()
    assert splits.description.vocabulary == 20_000


@pytest.mark.data
def test_the_real_census_is_whole_and_within_its_public_schema(data_folder: Path) -> None:
    splits = load("adult", data_folder)
    assert splits.public is not None
    assert splits.train.targets.bincount().tolist() == [24_720, 7_841]
    assert splits.public.targets.bincount().tolist() == [12_435, 3_846]
    assert splits.train.inputs.abs().max() <= 1.0
    # Six numeric columns, eight one-hot ones with exactly one slot taken each.
    assert (splits.train.inputs == 1.0).sum(1).min() >= 8


def test_digits_are_split_by_number_and_lie_between_minus_one_and_one() -> None:
    splits = load("digits")
    assert splits.public is not None
    assert (len(splits.train), len(splits.public)) == (1438, 359)
    assert (splits.train.inputs.min(), splits.train.inputs.max()) == (-1.0, 1.0)


def test_digits_without_scikit_learn_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(UserError, match=r"discreet\[digits\]"):
        load("digits")


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("place", ["mnist", "MNIST/raw"])
def test_mnist_is_found_plain_or_gzipped_here_or_where_torchvision_puts_it(
    no_data: Path, place: str, ending: str
) -> None:
    write_mnist(no_data / place, ending)
    assert len(load("mnist", no_data).train) == 30


def test_data_is_looked_for_where_the_environment_says(
    no_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_mnist(no_data / "mnist")
    monkeypatch.setenv("DISCREET_DATA", str(no_data))
    assert len(load("mnist").train) == 30


def test_mnist_files_are_never_taken_for_fashion(no_data: Path) -> None:
    write_mnist(no_data / "mnist")
    with pytest.raises(UserError, match="fashion-mnist is not on this machine"):
        load("fashion-mnist", no_data)


def test_half_a_data_set_is_not_found(no_data: Path) -> None:
    write_mnist(no_data / "mnist")
    (no_data / "mnist" / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(UserError, match="discreet data get mnist"):
        load("mnist", no_data)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"there are digits, mnist, .*, svhn, imdb, adult"):
        load("minst")


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda raw: raw[:-1], "its header promises"),
        (lambda raw: raw[:10], "ends inside its header"),
        (lambda raw: b"\x00\x00\x0d" + raw[3:], "not an IDX file of bytes"),
        (lambda raw: b"", "not an IDX file of bytes"),
    ],
)
def test_damaged_idx_files_are_refused(damage: object, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "images"
    write_idx(path, np.zeros((2, 28, 28)))
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(CorruptFile, match=problem):
        idx.read(path)


def test_a_cut_gzip_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "images.gz"
    write_idx(path, np.zeros((2, 28, 28)))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CorruptFile, match="get it again"):
        idx.read(path)


@pytest.mark.parametrize("place", [".", "cifar-10"])
def test_cifar_10_is_read_from_its_binary_batches(no_data: Path, place: str) -> None:
    folder = no_data / place / "cifar-10-batches-bin"
    write_cifar(folder, (*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"), 1)
    splits = load("cifar-10", no_data)
    assert len(splits.train) == 100
    raw = np.frombuffer((folder / "data_batch_2.bin").read_bytes(), np.uint8).reshape(20, 3073)
    expected = torch.from_numpy(raw[3, 1:].astype(np.float32)).reshape(3, 32, 32) / 127.5 - 1
    assert torch.allclose(splits.train.batch(torch.tensor([23]))[0][0], expected, atol=1e-6)


def test_cifar_100_takes_the_fine_label(no_data: Path) -> None:
    write_cifar(no_data / "cifar-100" / "cifar-100-binary", ("train.bin", "test.bin"), 2)
    splits = load("cifar-100", no_data)
    assert splits.train.targets.tolist() == [k % 10 for k in range(20)]
    assert splits.description.classes == 100


def test_a_cut_cifar_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(3072))
    with pytest.raises(CorruptFile, match="no multiple of 3073"):
        cifar.read(tmp_path / "a.bin", label_bytes=1)


def test_the_class_names_of_cifar_100_are_a_hundred_in_their_official_order() -> None:
    assert len(set(cifar.CIFAR_100)) == 100
    assert list(cifar.CIFAR_100) == sorted(cifar.CIFAR_100)


def test_svhn_reads_matlab_files_and_takes_label_ten_for_zero(no_data: Path) -> None:
    (no_data / "svhn").mkdir(parents=True)
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 12)).astype(np.uint8)
    labels = (np.arange(12) % 10 + 1).astype(np.uint8).reshape(-1, 1)
    for split in ("train", "test"):
        savemat(no_data / "svhn" / f"{split}_32x32.mat", {"X": pixels, "y": labels})
    records = load("svhn", no_data).train
    assert records.targets.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2]
    expected = torch.from_numpy(pixels[4, 7, :, 5].astype(np.float32)) / 127.5 - 1
    assert torch.allclose(records.inputs[5, :, 4, 7], expected, atol=1e-6)


def test_damaged_or_foreign_matlab_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "train_32x32.mat"
    path.write_bytes(b"no matlab file" * 20)
    with pytest.raises(CorruptFile):
        svhn.read(path, name="svhn", scale=PixelScale())
    savemat(path, {"other": np.zeros(3)})
    with pytest.raises(CorruptFile, match="does not hold images"):
        svhn.read(path, name="svhn", scale=PixelScale())


def test_reviews_are_read_from_the_official_folders_in_the_order_of_their_ids(no_data: Path) -> None:
    for split in ("train", "test"):
        for kind in ("neg", "pos"):
            folder = no_data / "imdb" / "aclImdb" / split / kind
            folder.mkdir(parents=True)
            for number in (10, 9):
                (folder / f"{number}_3.txt").write_text(f"{kind} {number}", encoding="utf-8")
    records = load("imdb", no_data).train
    words = imdb.HashedWords()
    assert records.targets.tolist() == [0, 0, 1, 1]
    assert torch.equal(records.inputs, words.encode(["neg 9", "neg 10", "pos 9", "pos 10"]))


def test_a_bad_line_of_reviews_is_named(no_data: Path) -> None:
    (no_data / "imdb").mkdir(parents=True)
    for split in ("train", "test"):
        lines = [json.dumps({"text": "good", "label": 1}), json.dumps({"text": "bad"})]
        (no_data / "imdb" / f"imdb_{split}.jsonl").write_text("\n".join(lines))
    with pytest.raises(CorruptFile, match="line 2"):
        load("imdb", no_data)


def test_importing_data_does_not_import_torch() -> None:
    script = "import discreet.data, sys; print('torch' in sys.modules, 'pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.data
def test_an_unreadable_file_of_a_real_data_set_is_named(data_folder: Path, no_data: Path) -> None:
    (no_data / "adult").mkdir(parents=True)
    for name in ("adult.data", "adult.test"):
        shutil.copy(data_folder / "adult" / f"{name}.gz", no_data / "adult" / f"{name}.gz")
    (no_data / "adult" / "adult.test.gz").chmod(0o644)
    (no_data / "adult" / "adult.test.gz").write_bytes(b"no gzip")
    with pytest.raises(UserError, match=r"adult\.test\.gz"):
        load("adult", no_data)


def test_every_default_model_takes_the_data_it_is_for() -> None:
    from discreet import models

    assert {named.entry(name).default_model for name in named.names()} <= set(models.names())

"""Image folders, npz files and other people's data sets."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from discreet.data.adapters import from_hugging_face, from_torch_dataset
from discreet.data.images import load_image_folder
from discreet.data.npz import load_npz
from discreet.data.text import HashedWords
from discreet.errors import CorruptFile, UserError


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Two classes of two pictures each, of different sizes; cats are black and dogs are white."""
    image = pytest.importorskip("PIL.Image")
    for kind, value in (("cat", 0), ("dog", 255)):
        (tmp_path / "pictures" / kind).mkdir(parents=True)
        for number in (1, 2):
            image.new("L", (10 * number, 7), value).save(tmp_path / "pictures" / kind / f"{number}.png")
    return tmp_path / "pictures"


def test_pictures_are_brought_to_one_size_and_scaled(pictures: Path) -> None:
    records = load_image_folder(pictures, size=(6, 8), classes=("cat", "dog"))
    assert records.description.input_shape == (3, 6, 8)
    assert records.targets.tolist() == [0, 0, 1, 1]
    inputs, _ = records.batch(torch.tensor([3, 0]))
    assert torch.allclose(inputs[0], torch.ones(3, 6, 8), atol=1e-6)
    assert torch.equal(inputs[1], -torch.ones(3, 6, 8))
    assert records.description.private_facts == ()


def test_class_names_taken_from_folders_are_said_to_be_read_off(pictures: Path) -> None:
    description = load_image_folder(pictures, size=(4, 4), channels=1).description
    assert description.class_names == ("cat", "dog")
    assert description.input_shape == (1, 4, 4)
    assert description.private_facts == ("the names of the classes are those of the folders",)


def test_a_broken_picture_is_named_before_training(pictures: Path) -> None:
    (pictures / "dog" / "3.png").write_bytes(b"no picture")
    with pytest.raises(CorruptFile, match=r"3\.png cannot be read as an image"):
        load_image_folder(pictures, size=(4, 4))


def test_a_cut_picture_is_named_before_training(pictures: Path) -> None:
    whole = (pictures / "dog" / "2.png").read_bytes()
    (pictures / "dog" / "2.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptFile, match=r"2\.png"):
        load_image_folder(pictures, size=(4, 4))


def test_folders_that_do_not_fit_the_classes_are_refused(pictures: Path) -> None:
    with pytest.raises(UserError, match="a folder 'dog', which is none of the classes"):
        load_image_folder(pictures, size=(4, 4), classes=("cat", "cow"))
    (pictures / "empty").mkdir()
    with pytest.raises(UserError, match="empty holds no image"):
        load_image_folder(pictures, size=(4, 4))
    with pytest.raises(UserError, match="there is no folder"):
        load_image_folder(pictures / "nowhere", size=(4, 4))
    with pytest.raises(UserError, match=r"0 folder\(s\)"):
        load_image_folder(pictures / "cat", size=(4, 4))


def test_without_pillow_it_is_said_what_to_install(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UserError, match=r"discreet\[images\]"):
        load_image_folder(pictures, size=(4, 4))


def test_an_npz_file_gives_its_two_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.ones((4, 3)), y=[0, 1, 0, 1])
    records = load_npz(tmp_path / "a.npz", inputs="x", targets="y", classes=2)
    assert records.inputs.shape == (4, 3)
    assert records.description.name == "a.npz"


def test_a_key_that_is_not_in_an_npz_file_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.ones(3), y=np.ones(3))
    with pytest.raises(UserError, match="no array 'inputs'; it has x, y"):
        load_npz(tmp_path / "a.npz")


def test_pickled_objects_in_an_npz_file_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", inputs=np.array([{"a": 1}, None], dtype=object), targets=[0, 1])
    with pytest.raises(CorruptFile, match="plain numbers"):
        load_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", b"\x80\x04pickle"])
def test_a_damaged_npz_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(CorruptFile):
        load_npz(tmp_path / "a.npz")


def test_an_npy_file_under_another_name_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(3))
    with pytest.raises(UserError, match="a single array"):
        load_npz((tmp_path / "a.npy").rename(tmp_path / "a.npz"))


def test_an_npz_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no file"):
        load_npz(tmp_path / "a.npz")


def test_a_torch_data_set_is_read_item_by_item() -> None:
    inputs, labels = torch.randn(5, 2), torch.tensor([0, 1, 1, 0, 1])
    records = from_torch_dataset(TensorDataset(inputs, labels), classes=2)
    assert torch.equal(records.inputs, inputs)
    assert torch.equal(records.targets, labels)
    assert records.description.name == "TensorDataset"


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        ([(torch.ones(2), 0), (torch.ones(3), 1)], "different shapes"),
        ([torch.ones(2)], "item 0 is no pair"),
        ([(object(), 0)], "input of record 0 cannot become a tensor"),
        ([], "there are no records"),
        (iter([]), "has no length"),
    ],
)
def test_torch_data_sets_that_cannot_be_records_are_refused(items: Any, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        from_torch_dataset(items, classes=2)


class HuggingFaceLike(dict[str, list[Any]]):
    """Columns by name, as a split of a Hugging Face data set gives them."""

    def __init__(self, names: list[str] | None = None, **columns: list[Any]) -> None:
        super().__init__(columns)
        self.column_names = list(columns)
        self.features = {"label": SimpleNamespace(names=names)}


def test_texts_of_hugging_face_are_hashed() -> None:
    dataset = HuggingFaceLike(names=["bad", "good"], text=["a film", "a play"], label=[0, 1])
    records = from_hugging_face(dataset, inputs="text", words=HashedWords(length=4))
    assert torch.equal(records.inputs, HashedWords(length=4).encode(["a film", "a play"]))
    assert records.description.class_names == ("bad", "good")
    assert records.description.private_facts == ()
    assert records.description.schema["kind"] == "text"


def test_pictures_and_numbers_of_hugging_face_are_taken() -> None:
    image = pytest.importorskip("PIL.Image")
    pictures = HuggingFaceLike(img=[image.new("RGB", (4, 5)), image.new("RGB", (4, 5))], label=[0, 1])
    assert from_hugging_face(pictures, inputs="img", classes=2).description.input_shape == (3, 5, 4)
    numbers = HuggingFaceLike(x=[[1.0, 2.0], [3.0, 4.0]], label=[0, 1])
    assert from_hugging_face(numbers, inputs="x", classes=2).inputs.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match="no column 'text'; it has x, label"):
        from_hugging_face(HuggingFaceLike(x=[1], label=[0]), inputs="text")

"""Records: gathering, checking, splitting."""

import numpy as np
import pytest
import torch

from discreet.data import Description, Records, Splits
from discreet.data.records import hold_out
from discreet.errors import UserError

INPUTS = torch.arange(12.0).reshape(6, 2)
TARGETS = torch.tensor([0, 1, 2, 0, 1, 2])


class Doubler:
    """A store that makes its rows when asked."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def gather(self, indices: torch.Tensor) -> torch.Tensor:
        return torch.stack([2.0 * indices, 2.0 * indices + 1], dim=1)


@pytest.fixture
def records() -> Records:
    return Records.from_arrays(INPUTS, TARGETS, classes=3)


@pytest.fixture
def lazy() -> Records:
    return Records(Doubler(6), TARGETS, Description(name="lazy", classes=3, input_shape=(2,)))


@pytest.mark.parametrize("kind", ["records", "lazy"])
def test_a_batch_holds_the_rows_asked_for_in_that_order(kind: str, request: pytest.FixtureRequest) -> None:
    records: Records = request.getfixturevalue(kind)
    inputs, targets = records.batch(torch.tensor([4, 0, 4]))
    assert torch.equal(inputs, INPUTS[[4, 0, 4]])
    assert torch.equal(targets, TARGETS[[4, 0, 4]])


@pytest.mark.parametrize("kind", ["records", "lazy"])
def test_an_empty_batch_has_the_right_shape(kind: str, request: pytest.FixtureRequest) -> None:
    records: Records = request.getfixturevalue(kind)
    inputs, targets = records.batch(torch.empty(0, dtype=torch.int64))
    assert inputs.shape == (0, 2)
    assert targets.shape == (0,)


@pytest.mark.parametrize("kind", ["records", "lazy"])
def test_all_batches_together_are_all_records(kind: str, request: pytest.FixtureRequest) -> None:
    records: Records = request.getfixturevalue(kind)
    batches = list(records.batches(4))
    assert [len(targets) for _, targets in batches] == [4, 2]
    assert torch.equal(torch.cat([inputs for inputs, _ in batches]), INPUTS)
    assert torch.equal(records.inputs, INPUTS)


@pytest.mark.parametrize("kind", ["records", "lazy"])
def test_chosen_records_are_records(kind: str, request: pytest.FixtureRequest) -> None:
    records: Records = request.getfixturevalue(kind)
    chosen = records.select(torch.tensor([5, 1]))
    assert len(chosen) == 2
    assert torch.equal(chosen.batch(torch.tensor([1]))[0], INPUTS[[1]])


def test_numbers_become_float32_and_labels_int64() -> None:
    records = Records.from_arrays(np.ones((2, 3), dtype=np.int16), np.array([0.0, 1.0]), classes=2)
    assert records.inputs.dtype == torch.float32
    assert records.targets.dtype == torch.int64


def test_token_ids_stay_whole() -> None:
    records = Records.from_arrays([[1, 2], [3, 0]], [0, 1], classes=2, vocabulary=4)
    assert records.inputs.dtype == torch.int64
    assert records.description.vocabulary == 4


@pytest.mark.parametrize("shape", [(4, 5, 5), (4, 1, 5, 5), (4, 5, 5, 1)])
def test_arrays_of_bytes_are_images_whatever_the_place_of_their_channel(shape: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, 100).astype(np.uint8)
    records = Records.from_arrays(pixels.reshape(shape), [0, 1, 0, 1], classes=2)
    assert records.description.input_shape == (1, 5, 5)
    assert torch.allclose(records.inputs.flatten(), torch.from_numpy(pixels).float() / 127.5 - 1.0, atol=1e-6)


def test_colours_that_come_last_are_moved_first() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 6, 7, 3)).astype(np.uint8)
    records = Records.from_arrays(pixels, [0, 1], classes=2)
    assert records.inputs.shape == (2, 3, 6, 7)
    expected = torch.from_numpy(pixels[1, :, :, 2]).float() / 127.5 - 1.0
    assert torch.allclose(records.inputs[1, 2], expected, atol=1e-6)


def test_a_number_of_classes_that_was_declared_is_public() -> None:
    description = Records.from_arrays(INPUTS, TARGETS, classes=3).description
    assert "the number of classes" in description.public_facts
    assert description.private_facts == ()


def test_a_number_of_classes_read_off_the_labels_is_said_to_be_so() -> None:
    description = Records.from_arrays(INPUTS, TARGETS).description
    assert description.classes == 3
    assert description.private_facts == ("the number of classes is the greatest label + 1",)


def test_sizes_are_private_unless_declared_public() -> None:
    assert not Records.from_arrays(INPUTS, TARGETS).description.size_is_public
    assert Records.from_arrays(INPUTS, TARGETS, size_is_public=True).description.size_is_public


def test_the_schema_hash_sees_no_record() -> None:
    other = Records.from_arrays(-INPUTS[:4], TARGETS[[1, 1, 0, 2]], classes=3)
    assert (
        other.description.schema_hash
        == Records.from_arrays(INPUTS, TARGETS, classes=3).description.schema_hash
    )


@pytest.mark.parametrize(
    ("inputs", "targets", "problem"),
    [
        ([[1.0, float("nan")], [1.0, 2.0]], [0, 1], "record 0 is nan at column 1"),
        ([[1.0, 2.0], [float("-inf"), 2.0]], [0, 1], "record 1 is -inf at column 0"),
        ([[1e300], [1.0]], [0, 1], "record 0 is inf at column 0"),
        ([[1.0], [2.0, 3.0]], [0, 1], "rows of different lengths"),
        ([["a"], ["b"]], [0, 1], "plain numbers"),
        ([[1.0], [2.0]], [0, 3], "record 1 has label 3; with 3 classes labels must be 0 to 2"),
        ([[1.0], [2.0]], [0, -1], "record 1 has label -1"),
        ([[1.0], [2.0]], [0, 0.5], "record 1 is 0.5; labels must be whole numbers"),
        ([[1.0], [2.0]], [0, float("nan")], "record 1 is nan"),
        ([[1.0], [2.0]], ["no", "yes"], "whole numbers"),
        ([[1.0], [2.0]], [[0, 1], [1, 0]], "one label per record"),
        ([[1.0], [2.0]], [0, 1, 2], "2 inputs but 3 targets"),
        (np.empty((0, 2)), np.empty(0), "there are no records"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_bad_records_get_one_clear_message(inputs: object, targets: object, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        Records.from_arrays(inputs, targets, name="toy", classes=3)  # type: ignore[arg-type]


def test_token_ids_must_be_in_the_vocabulary() -> None:
    with pytest.raises(UserError, match="record 1 has token id 9 at position 0"):
        Records.from_arrays([[1], [9]], [0, 1], classes=2, vocabulary=5)


def test_token_ids_must_be_whole() -> None:
    with pytest.raises(UserError, match="plain numbers"):
        Records.from_arrays([[1.5], [2.0]], [0, 1], classes=2, vocabulary=5)


@pytest.mark.parametrize(
    ("targets", "problem"),
    [([0], r"1 record\(s\); training needs at least 2"), ([2, 2, 2], "all 3 records have label 2")],
)
def test_records_that_teach_nothing_are_refused_for_training(targets: list[int], problem: str) -> None:
    records = Records.from_arrays(np.zeros((len(targets), 2)), targets, classes=3)
    with pytest.raises(UserError, match=problem):
        Splits(train=records)


def test_inputs_must_be_what_the_description_says() -> None:
    with pytest.raises(ValueError, match=r"the description says float32 of shape \(5,\)"):
        Records(INPUTS, TARGETS, Description(name="toy", classes=3, input_shape=(5,)))


def test_an_evaluation_split_must_be_declared(records: Records) -> None:
    with pytest.raises(ValueError, match="must be declared"):
        Splits(train=records, public=records)
    with pytest.raises(ValueError, match="must be one of"):
        Splits(train=records, public=records, declared="private")  # type: ignore[arg-type]


def test_an_evaluation_split_must_have_the_same_schema(records: Records) -> None:
    other = Records.from_arrays(np.zeros((6, 3)), TARGETS, classes=3)
    with pytest.raises(UserError, match="another schema"):
        Splits(train=records, public=other, declared="public")


def test_a_holdout_takes_every_so_many_th_record_and_leaves_the_rest(records: Records) -> None:
    splits = hold_out(records, every=3)
    assert splits.public is not None
    assert splits.declared == "non-private holdout"
    assert torch.equal(splits.public.inputs, INPUTS[[2, 5]])
    assert torch.equal(splits.train.inputs, INPUTS[[0, 1, 3, 4]])


def test_a_holdout_of_too_few_records_is_refused(records: Records) -> None:
    with pytest.raises(UserError, match="too few"):
        hold_out(records, every=7)

"""Texts as ids by public hashing."""

from collections import Counter
from collections.abc import Callable, Sequence

import pytest
import torch

from discreet.data.text import HashedWords

TEXTS = ["A good film.", "a film<br />GOOD film", "", "an unheard-of masterpiece", "a a a a a"]
Encoder = Callable[[Sequence[str]], torch.Tensor]


def a_text_is_encoded_the_same_whatever_the_others_are(encode: Encoder) -> bool:
    together = encode(TEXTS)
    return all(torch.equal(together[row], encode([text])[0]) for row, text in enumerate(TEXTS))


def test_a_text_is_encoded_by_itself() -> None:
    assert a_text_is_encoded_the_same_whatever_the_others_are(HashedWords(length=6).encode)


def test_a_vocabulary_chosen_from_the_texts_is_found_out() -> None:
    def by_frequency(texts: Sequence[str]) -> torch.Tensor:
        counts = Counter(word for text in texts for word in text.split())
        place = {word: rank + 1 for rank, (word, _) in enumerate(counts.most_common())}
        rows = [[place[word] for word in text.split()][:6] for text in texts]
        return torch.tensor([row + [0] * (6 - len(row)) for row in rows])

    assert not a_text_is_encoded_the_same_whatever_the_others_are(by_frequency)


def test_case_marks_and_line_breaks_do_not_matter() -> None:
    encoded = HashedWords(length=4).encode(["A good film.", "a<br />GOOD -- film!"])
    assert torch.equal(encoded[0], encoded[1])


def test_ids_are_fixed_for_all_time() -> None:
    assert HashedWords().token("film") == 17206


def test_ids_leave_zero_to_padding_and_long_texts_are_cut() -> None:
    words = HashedWords(vocabulary=3, length=2)
    encoded = words.encode(["one", "", " ".join(map(str, range(50)))])
    assert encoded.shape == (3, 2)
    assert encoded[0, 1] == 0
    assert encoded[1].tolist() == [0, 0]
    assert all(1 <= words.token(str(word)) <= 2 for word in range(50))


@pytest.mark.parametrize(
    ("change", "problem"), [({"vocabulary": 1}, "vocabulary is 1"), ({"length": 0}, "length is 0")]
)
def test_sizes_that_cannot_be_are_refused(change: dict[str, int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        HashedWords(**change)

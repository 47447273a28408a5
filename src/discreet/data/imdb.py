"""The Large Movie Review Dataset (Maas et al. 2011), as its archive unpacks or as JSON lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from discreet.data.description import Description
from discreet.data.folders import maybe_file
from discreet.data.records import Records, Splits
from discreet.data.text import HashedWords
from discreet.errors import CorruptFile

CLASSES = ("neg", "pos")


def load(folder: Path, *, words: HashedWords | None = None) -> Splits:
    """25,000 reviews to train on and 25,000 as the declared non-private holdout.

    `folder` holds either `aclImdb/`, or `imdb_train.jsonl` and `imdb_test.jsonl` (plain or gzipped) with the
    keys "text" and "label" (0 negative, 1 positive). The two layouts give the records in different orders.
    """
    words = words or HashedWords()
    return Splits(
        train=_split(folder, "train", name="imdb", words=words),
        public=_split(folder, "test", name="imdb test split", words=words),
        declared="non-private holdout",
    )


def _split(folder: Path, split: str, *, name: str, words: HashedWords) -> Records:
    import torch

    lines = maybe_file(folder, f"imdb_{split}.jsonl")
    reviews = _json_lines(lines) if lines is not None else _text_files(folder / "aclImdb" / split)
    description = Description(
        name=name,
        classes=len(CLASSES),
        class_names=CLASSES,
        input_shape=(words.length,),
        input_dtype="int64",
        vocabulary=words.vocabulary,
        schema=words.schema(),
        size_is_public=True,
        public_facts=("a published data set: its size and its classes are public; words are hashed",),
    )
    tokens = words.encode(text for text, _ in reviews)
    return Records(tokens, torch.tensor([label for _, label in reviews], dtype=torch.int64), description)


def _json_lines(path: Path) -> list[tuple[str, int]]:
    reviews = []
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8") as file
        ):
            for line in file:
                review = json.loads(line)
                reviews.append((str(review["text"]), int(review["label"])))
    except (OSError, EOFError, KeyError, TypeError, ValueError) as error:
        raise CorruptFile(f"{path}, line {len(reviews) + 1}, cannot be read: {error!r}") from error
    return reviews


def _text_files(folder: Path) -> list[tuple[str, int]]:
    """Reviews in the order of their ids, negative ones first; files are called ID_RATING.txt."""
    reviews = []
    for label, kind in enumerate(CLASSES):
        for path in sorted((folder / kind).glob("*_*.txt"), key=lambda path: int(path.stem.split("_")[0])):
            reviews.append((path.read_text(encoding="utf-8"), label))
    if not reviews:
        raise CorruptFile(f"{folder} holds no reviews; get them again with `discreet data get imdb`")
    return reviews

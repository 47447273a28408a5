"""Networks on hashed words: bags of words and a small transformer. Token 0 is padding."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from discreet.models.activations import activation


class MeanOfWords(nn.Module):
    """The mean over the words of a text, padding left out; zeros for a text without words."""

    def forward(self, states: Tensor, tokens: Tensor) -> Tensor:
        """(records, length, width) and the token ids they stand for, to (records, width)."""
        present = (tokens != 0).unsqueeze(-1).to(states.dtype)
        return (states * present).sum(1) / present.sum(1).clamp(min=1.0)


class BagOfWords(nn.Module):
    """The mean of word vectors, then a linear layer or one hidden layer."""

    def __init__(self, vocabulary: int, classes: int, *, embedding: int, hidden: int, act: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.mean = MeanOfWords()
        layers = [nn.Linear(embedding, hidden), activation(act)] if hidden else []
        self.head = nn.Sequential(*layers, nn.Linear(hidden or embedding, classes))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of a batch of token ids."""
        return self.head(self.mean(self.embedding(tokens), tokens))  # type: ignore[no-any-return]


def bow_imdb(
    input_shape: tuple[int, ...],
    classes: int,
    *,
    vocabulary: int = 20_000,
    embedding: int = 16,
    hidden: int = 16,
    act: str = "tanh",
) -> nn.Module:
    """Pooled word vectors; with `hidden` 0 there is no hidden layer and the whole is linear."""
    _check_tokens(input_shape)
    return BagOfWords(vocabulary, classes, embedding=embedding, hidden=hidden, act=act)


class Attention(nn.Module):
    """Self-attention with several heads; padding is not attended to."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, states: Tensor, tokens: Tensor) -> Tensor:
        """What every position takes from all others."""
        query, key, value = (self._split(part(states)) for part in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        # A great negative number rather than -inf: a text of nothing but padding must not give NaN.
        scores = scores + (tokens == 0)[:, None, None, :].to(scores.dtype) * -1e9
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.out(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def _split(self, states: Tensor) -> Tensor:
        return states.reshape(*states.shape[:2], self.heads, -1).transpose(1, 2)


class Block(nn.Module):
    """One layer of a transformer, normalised before each part."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.before_dense = nn.LayerNorm(width)
        self.dense = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, states: Tensor, tokens: Tensor) -> Tensor:
        """The states of the next layer."""
        states = states + self.attention(self.before_attention(states), tokens)
        return states + self.dense(self.before_dense(states))  # type: ignore[no-any-return]


class Transformer(nn.Module):
    """Word and place vectors, blocks, the mean over words, the classes."""

    def __init__(
        self, vocabulary: int, length: int, classes: int, *, width: int, heads: int, depth: int
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.normalise = nn.LayerNorm(width)
        self.mean = MeanOfWords()
        self.head = nn.Linear(width, classes)
        nn.init.normal_(self.words.weight, std=0.02)
        nn.init.normal_(self.places.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of a batch of token ids."""
        places = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        states = self.words(tokens) + self.places(places)
        for block in self.blocks:
            states = block(states, tokens)
        return self.head(self.mean(self.normalise(states), tokens))  # type: ignore[no-any-return]


def transformer_small(
    input_shape: tuple[int, ...],
    classes: int,
    *,
    vocabulary: int = 20_000,
    width: int = 128,
    heads: int = 4,
    depth: int = 2,
    length: int = 128,
) -> nn.Module:
    """A transformer of two layers that reads the first `length` tokens."""
    _check_tokens(input_shape)
    if width % heads:
        raise ValueError(f"width is {width} and heads is {heads}; width must be a multiple of heads")
    kept = min(length, input_shape[0])
    network = Transformer(vocabulary, kept, classes, width=width, heads=heads, depth=depth)
    return nn.Sequential(FirstTokens(kept), network)


class FirstTokens(nn.Module):
    """The first `length` tokens of every text."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def forward(self, tokens: Tensor) -> Tensor:
        """The texts, cut."""
        return tokens[:, : self.length]


def _check_tokens(input_shape: tuple[int, ...]) -> None:
    if len(input_shape) != 1:
        raise ValueError(f"input_shape is {input_shape}; it must be (length,) of token ids")

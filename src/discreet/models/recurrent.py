"""The papers' recurrent network for IMDb, with an LSTM made of linear layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from discreet.models.activations import activation
from discreet.models.text import MeanOfWords


class LSTM(nn.Module):
    """One layer of LSTM over (records, steps, features), giving (records, steps, width).

    It is `torch.nn.LSTM` in parts that per-record gradients have rules for: one linear layer on all inputs at
    once, and one on the state of the step before. The forget gate's bias starts at 1.
    """

    def __init__(self, features: int, width: int, *, backward: bool = False) -> None:
        super().__init__()
        self.width = width
        self.backward_in_time = backward
        self.inputs = nn.Linear(features, 4 * width)
        self.recurrent = nn.Linear(width, 4 * width, bias=False)
        with torch.no_grad():
            self.inputs.bias[width : 2 * width].fill_(1.0)

    def forward(self, sequence: Tensor) -> Tensor:
        """The hidden state after every step, in the order of the sequence."""
        driven = self.inputs(sequence)
        if self.backward_in_time:
            driven = driven.flip(1)
        hidden = driven.new_zeros(driven.shape[0], self.width)
        cell = hidden
        states = []
        for step in driven.unbind(1):
            into, forget, candidate, out = (step + self.recurrent(hidden)).chunk(4, dim=1)
            cell = torch.sigmoid(forget) * cell + torch.sigmoid(into) * torch.tanh(candidate)
            hidden = torch.sigmoid(out) * torch.tanh(cell)
            states.append(hidden)
        hidden_states = torch.stack(states, dim=1)
        return hidden_states.flip(1) if self.backward_in_time else hidden_states


class LSTMClassifier(nn.Module):
    """Embedding, a linear layer, LSTMs both ways, the mean over words, a hidden layer, the classes."""

    def __init__(
        self, vocabulary: int, classes: int, *, embedding: int, width: int, hidden: int, act: str
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.reduce = nn.Linear(embedding, width)
        self.forwards = LSTM(width, width)
        self.backwards = LSTM(width, width, backward=True)
        self.mean = MeanOfWords()
        self.head = nn.Sequential(nn.Linear(2 * width, hidden), activation(act), nn.Linear(hidden, classes))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of a batch of token ids."""
        words = self.reduce(self.embedding(tokens))
        states = torch.cat([self.forwards(words), self.backwards(words)], dim=2)
        return self.head(self.mean(states, tokens))  # type: ignore[no-any-return]


def lstm_imdb(
    input_shape: tuple[int, ...],
    classes: int,
    *,
    vocabulary: int = 20_000,
    embedding: int = 100,
    width: int = 32,
    hidden: int = 16,
    act: str = "tanh",
) -> nn.Module:
    """The network that the papers train on IMDb: 2,020,946 parameters, 2,000,000 of them in the embedding."""
    if len(input_shape) != 1:
        raise ValueError(f"input_shape is {input_shape}; it must be (length,) of token ids")
    return LSTMClassifier(vocabulary, classes, embedding=embedding, width=width, hidden=hidden, act=act)

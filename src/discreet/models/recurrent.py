"""The papers' recurrent network for IMDb."""

from __future__ import annotations

from torch import Tensor, nn

from discreet.models.activations import activation
from discreet.models.text import MeanOfWords


class LSTMClassifier(nn.Module):
    """Embedding, a linear layer, an LSTM both ways, the mean over words, a hidden layer, the classes."""

    def __init__(
        self, vocabulary: int, classes: int, *, embedding: int, width: int, hidden: int, act: str
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.reduce = nn.Linear(embedding, width)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.mean = MeanOfWords()
        self.head = nn.Sequential(nn.Linear(2 * width, hidden), activation(act), nn.Linear(hidden, classes))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of a batch of token ids."""
        states, _ = self.lstm(self.reduce(self.embedding(tokens)))
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
    """The network that the papers train on IMDb: 2,021,202 parameters, 2,000,000 of them in the embedding."""
    if len(input_shape) != 1:
        raise ValueError(f"input_shape is {input_shape}; it must be (length,) of token ids")
    return LSTMClassifier(vocabulary, classes, embedding=embedding, width=width, hidden=hidden, act=act)

"""Attacks that are networks: trained on records whose membership the adversary knows, used on those it does not.

Black-box (Salem et al. 2019, adversary 1): the adversary trains one shadow model as the target was trained, on records
of its own, and learns on it what outputs for members look like. White-box with partial knowledge (Nasr et al. 2019):
the adversary has the target's weights and knows some of its members, and learns on these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from discreet.audit.outputs import Outputs

Truths = NDArray[np.bool_]
Places = NDArray[np.int64]

_EPOCHS = 50
_BATCH = 128
_LEARNING_RATE = 1e-3
_WIDEST_GRADIENT = 4096


class _Judge(nn.Module):
    """One part for each kind of feature, 64 wide, and a network that judges by all of them."""

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU()) for width in widths
        )
        self.head = nn.Sequential(
            nn.Linear(64 * len(widths), 256),
            nn.ReLU(),
            nn.Linear(256, 128),
            nn.ReLU(),
            nn.Linear(128, 64),
            nn.ReLU(),
            nn.Linear(64, 2),
        )

    def forward(self, *features: Tensor) -> Tensor:
        judged = [part(each) for part, each in zip(self.parts, features, strict=True)]
        found: Tensor = self.head(torch.cat(judged, dim=1))
        return found


def black_box_features(outputs: Outputs) -> list[Tensor]:
    """Sorted probabilities, and whether the most probable class is the right one."""
    probabilities = outputs.probabilities
    right = (probabilities.argmax(dim=1) == outputs.labels).float()[:, None]
    return [probabilities.sort(dim=1, descending=True).values.float(), right]


def white_box_features(outputs: Outputs) -> list[Tensor]:
    """Sorted probabilities, loss, label, and the gradient of the record's own loss by the last layer's weights.

    The gradient of the cross-entropy by the weights of the last layer is the outer product of (probabilities - label)
    and the layer's input: one matrix per record, with nothing of any other record in it.
    """
    probabilities, labels = outputs.probabilities, outputs.labels
    label = nn.functional.one_hot(labels, probabilities.shape[1]).double()
    loss = -probabilities.gather(1, labels[:, None]).clamp_min(1e-300).log()
    gradient = (probabilities - label)[:, :, None] * outputs.last_inputs.double()[:, None, :]
    flat = gradient.flatten(1)
    if flat.shape[1] > _WIDEST_GRADIENT:
        # The norms of rows and columns carry what does not fit.
        flat = torch.cat([gradient.norm(dim=2), gradient.norm(dim=1)], dim=1)
    sorted_first = probabilities.sort(dim=1, descending=True).values
    return [each.float() for each in (sorted_first, loss, label, flat)]


def learned_scores(
    learn: Sequence[Tensor], member: Tensor, asked: Sequence[Tensor], *, seed: int, epochs: int = _EPOCHS
) -> NDArray[np.float64]:
    """Train the attack on features with known membership; the log-odds of membership for the others.

    Args:
        learn: features of the known records, by kind.
        member: which of them are members.
        asked: features of the records that are asked about.
        seed: of the attack's weights and batches.
        epochs: passes over the known records.
    """
    scale = [(each.mean(dim=0), each.std(dim=0).clamp_min(1e-6)) for each in learn]
    known = [(each - mean) / deviation for each, (mean, deviation) in zip(learn, scale, strict=True)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        judge = _Judge([each.shape[1] for each in known])
        optimizer = torch.optim.Adam(judge.parameters(), lr=_LEARNING_RATE)
        for _ in range(epochs):
            for rows in torch.split(torch.randperm(len(member)), _BATCH):
                optimizer.zero_grad()
                answer = judge(*(each[rows] for each in known))
                loss = nn.functional.cross_entropy(answer, member[rows].long())
                torch.autograd.backward(loss)
                optimizer.step()
        with torch.no_grad():
            answers = judge(
                *((each - mean) / deviation for each, (mean, deviation) in zip(asked, scale, strict=True))
            )
    return np.asarray((answers[:, 1] - answers[:, 0]).double().numpy())


def balanced(member: Truths, among: Places, draw: np.random.Generator) -> Places:
    """As many members as others among these records, in a random order."""
    inside, outside = among[member[among]], among[~member[among]]
    count = min(len(inside), len(outside))
    chosen = np.concatenate([draw.permutation(inside)[:count], draw.permutation(outside)[:count]])
    return np.asarray(draw.permutation(chosen))

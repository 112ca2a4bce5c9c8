"""How much more often than its confidence says a token stands, counted over visits.

Letters: N positions, P proposals nearby, V vocabulary. Few sightings count little: every token has ``SHRINK`` more
sightings without a surplus. A habit that a position is fitted with leaves its own prompt out, since it would otherwise
hold the answer.
"""

from __future__ import annotations

import torch
from torch import Tensor

from starr.decode.strategies.calibrated.features import HABIT_REACH as OWN  # where a position's own proposal stands

SHRINK = 20.0


def token_habits(proposals: Tensor, surplus: Tensor, vocabulary: int) -> Tensor:
    """(V,) float32: the mean ``surplus`` (N,), stood minus confidence, of each token that ``proposals`` (N, P) own."""
    total, count = sums(proposals[:, OWN], surplus, vocabulary)
    return total / (count + SHRINK)


def habits_apart(proposals: Tensor, surplus: Tensor, prompt: Tensor, held: Tensor, vocabulary: int) -> Tensor:
    """(N, P) float32: habits from the positions that are not ``held`` (N,) and not of the same ``prompt`` (N,)."""
    used, tokens = ~held, proposals.clamp_min(0)
    total, count = sums(proposals[used, OWN], surplus[used], vocabulary)
    keys = prompt[:, None] * vocabulary + tokens
    known, place = torch.unique(keys[used, OWN], return_inverse=True)
    own_total, own_count = sums(place, surplus[used], len(known))
    at = torch.searchsorted(known, keys).clamp(max=len(known) - 1)
    same = (known[at] == keys) & used[:, None]
    rest = total[tokens] - torch.where(same, own_total[at], 0.0)
    others = count[tokens] - torch.where(same, own_count[at], 0.0)
    return torch.where(proposals >= 0, rest / (others + SHRINK), 0.0)


def sums(index: Tensor, values: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """(size,) twice: the sum of ``values`` (N,) at each ``index`` (N,), and how many there are."""
    total = torch.zeros(size).index_add(0, index, values)
    return total, torch.zeros(size).index_add(0, index, torch.ones_like(values))

"""Fit the small networks of a rule: logistic loss of both outputs, early stopping on prompts that were held out.

A habit is how much more often than its confidence says a token stands, counted over visits. The habit that a position
is fitted with leaves its own prompt out, since it would otherwise hold the answer.

Letters: N positions, F features, M networks, H hidden units, P proposals nearby, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from starr.decode.strategies.calibrated.features import GROUPS, HABIT_REACH, NAMES, SEEN
from starr.decode.strategies.calibrated.rule import FittedRule

HELD_OUT = 5  # one of so many prompts
SHRINK = 20.0  # sightings without a surplus that every token has besides its own, so that few count little
OWN = HABIT_REACH  # where a position's own proposal stands among those nearby


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a rule is fitted."""

    hidden: int = 64
    networks: int = 3
    rate: float = 0.005  # falls linearly to zero over the epochs
    decay: float = 1e-3
    batch: int = 2048
    epochs: int = 40
    patience: int = 6  # epochs without a better held-out loss
    without: tuple[str, ...] = ()  # groups of features that are left out, for ablations
    seed: int = 0


def fit(
    features: Tensor,
    proposals: Tensor,
    stood: Tensor,
    harmful: Tensor,
    prompt: Tensor,
    vocabulary: int,
    recipe: Recipe,
) -> FittedRule:
    """The rule of positions (N, len(SEEN)) with the proposals nearby (N, len(TOKEN)) that stood (N,) or not.

    ``harmful`` (N,) are those that did not and would not fit; ``prompt`` (N,) says where they come from.
    """
    held = held_out(prompt)
    surplus = stood.float() - features[:, SEEN.index("confidence")]
    x = torch.cat((features, habits_apart(proposals, surplus, prompt, held, vocabulary)), dim=1)
    keep = torch.tensor([not any(name in GROUPS[group] for group in recipe.without) for name in NAMES])
    mean, scale = x[~held].mean(0), x[~held].std(0).clamp_min(1e-3)
    x = ((x - mean) / scale * keep).float()
    y = torch.stack((stood, harmful), dim=1).float()
    torch.manual_seed(recipe.seed)
    weights = start(recipe, x.shape[1])
    w1, b1, w2, b2 = descend(weights, (x[~held], y[~held]), (x[held], y[held]), recipe)
    habits = token_habits(proposals[~held], surplus[~held], vocabulary)
    return FittedRule(mean, scale, w1 * keep[None, :, None], b1, w2, b2, habits)


def held_out(prompt: Tensor) -> Tensor:
    """(N,) bool: one of every five prompts, in each five another one, since kinds of prompts may come in turn."""
    return (prompt + prompt // HELD_OUT) % HELD_OUT == 0


def start(recipe: Recipe, count: int) -> list[Tensor]:
    """Random first weights of all networks."""
    nets, hidden = recipe.networks, recipe.hidden
    return [
        torch.randn(nets, count, hidden) / count**0.5,
        torch.zeros(nets, 1, hidden),
        torch.randn(nets, hidden, 2) / hidden**0.5,
        torch.zeros(nets, 1, 2),
    ]


def logits_of(weights: list[Tensor], x: Tensor) -> Tensor:
    """(M, N, 2) of positions (N, F)."""
    w1, b1, w2, b2 = weights
    return torch.matmul(torch.tanh(torch.matmul(x, w1) + b1), w2) + b2


def descend(
    weights: list[Tensor], train: tuple[Tensor, Tensor], held: tuple[Tensor, Tensor], recipe: Recipe
) -> list[Tensor]:
    """The weights with the lowest held-out loss; each network is its own, all are trained side by side."""
    weights = [w.requires_grad_() for w in weights]
    adam = torch.optim.AdamW(weights, lr=recipe.rate, weight_decay=recipe.decay)
    best, lowest, waited = [w.detach().clone() for w in weights], float("inf"), 0
    for epoch in range(recipe.epochs):
        adam.param_groups[0]["lr"] = recipe.rate * (1 - epoch / recipe.epochs)
        for part in torch.split(torch.randperm(len(train[1])), recipe.batch):
            loss = loss_of(logits_of(weights, train[0][part]).sigmoid(), train[1][part])
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        with torch.no_grad():
            score = float(loss_of(logits_of(weights, held[0]).sigmoid().mean(0, keepdim=True), held[1]))
        if score < lowest - 1e-5:
            best, lowest, waited = [w.detach().clone() for w in weights], score, 0
        else:
            waited += 1
        if waited >= recipe.patience:
            break
    return best


def loss_of(said: Tensor, y: Tensor) -> Tensor:
    """Logistic loss of P (M, N, 2) for (stood, harmful) (N, 2); those that stood say nothing of harm."""
    losses = F.binary_cross_entropy(said.clamp(1e-6, 1 - 1e-6), y.expand_as(said), reduction="none")
    return losses[..., 0].mean() + (losses[..., 1] * (1.0 - y[:, 0])).mean()


def reliability(chance: Tensor, stood: Tensor, bins: int = 10) -> dict[str, Any]:
    """Bins of equal width: mean P, share that stood, count; the expected calibration error; and the logistic loss."""
    index = (chance * bins).long().clamp(max=bins - 1)
    rows, error = [], 0.0
    for number in range(bins):
        here = index == number
        if here.any():
            said, was = float(chance[here].mean()), float(stood[here].float().mean())
            error += abs(said - was) * int(here.sum()) / len(chance)
            rows.append({"said": round(said, 4), "stood": round(was, 4), "n": int(here.sum())})
    loss = F.binary_cross_entropy(chance.clamp(1e-6, 1 - 1e-6), stood.float())
    return {"bins": rows, "error": round(error, 5), "loss": round(float(loss), 4)}


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

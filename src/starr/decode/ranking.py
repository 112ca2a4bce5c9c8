"""Choosing positions by score. Ties always go to the lower position. Letters: B rows, W positions."""

from __future__ import annotations

import torch
from torch import Tensor


def best_of(score: Tensor, among: Tensor) -> Tensor:
    """One-hot (B, W) bool of the highest score among the given positions; ties to the lower position; empty if none."""
    ranked = score.masked_fill(~among, -torch.inf)
    top = ranked.max(dim=1, keepdim=True).values
    first = (ranked == top) & among
    return first & (first.cumsum(dim=1) == 1)


def rank_of(score: Tensor, among: Tensor) -> Tensor:
    """Rank (B, W) int64 by descending score among the given positions, ties to the lower position; W elsewhere."""
    order = score.masked_fill(~among, -torch.inf).argsort(dim=1, descending=True, stable=True)
    index = torch.arange(score.shape[1], device=score.device).expand_as(order)
    rank = torch.empty_like(order).scatter_(1, order, index)
    return rank.masked_fill(~among, score.shape[1])


def top_of(score: Tensor, among: Tensor, count: Tensor) -> Tensor:
    """The ``count`` (B,) highest scores among the given positions, as (B, W) bool; ties to the lower position."""
    return among & (rank_of(score, among) < count[:, None])


def with_best(chosen: Tensor, score: Tensor, among: Tensor) -> Tensor:
    """(B, W) bool: the chosen positions, and always the highest score among the given ones."""
    return chosen | best_of(score, among)

"""Reveal a window in dilated levels, far apart first (DUS, arXiv:2506.19037).

Strides are width // base, width // base^2, ... down to 1: a level holds the positions that are multiples of its stride
and of no earlier one; what no stride reaches is a last level, and a last level smaller than the one before joins it.
Each step commits one level, where confidence >= ``skip``; skipped positions are delayed to the next level, and the last
level commits everything. If a step must commit and skips its whole level, it is the level's most confident position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import FIXED, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option
from starr.plugins import register


def dilated_levels(width: Tensor, size: int, base: int) -> Tensor:
    """Level (B, size) int64 of each position for rows of the given width (B,); -1 beyond it."""
    index = torch.arange(size, device=width.device)
    level = torch.full((len(width), size), -1, device=width.device)
    open_, rounds, stride = index < width[:, None], 0, width[:, None]
    while base ** (rounds + 1) <= size:
        stride = torch.div(stride, base, rounding_mode="floor")
        reached = open_ & (stride > 0) & (index % stride.clamp_min(1) == 0)
        level = level.masked_fill(reached, rounds)
        open_, rounds = open_ & ~reached, rounds + 1
    rest = level.amax(dim=1, keepdim=True) + 1
    return merge_last(torch.where(open_, rest, level))


def merge_last(level: Tensor) -> Tensor:
    """Levels (B, W) with the last one joined to the one before where it is the smaller."""
    last = level.amax(dim=1, keepdim=True)
    is_last, is_previous = level == last, (level == last - 1) & (level >= 0)
    smaller = is_last.sum(dim=1, keepdim=True) < is_previous.sum(dim=1, keepdim=True)
    return torch.where(is_last & smaller, last - 1, level)


@register
@dataclass(frozen=True, kw_only=True)
class Dus(Strategy):
    """Commit dilated levels of a window, far apart first; unsure positions wait for the next level."""

    name: ClassVar[str] = "dus"
    paper: ClassVar[str] = "DUS, arXiv:2506.19037"
    sweep: ClassVar[Sweep] = Sweep(FIXED, "base", (2, 3, 4, 8))
    base: int = option(2, "each level's stride is the last one divided by this", low=2)
    skip: float = option(0.3, "positions below this confidence wait for the next level", low=0.0, high=1.0)

    def begin(self, view: StepView) -> Carry:
        level = dilated_levels(view.width, view.masked.shape[1], self.base)
        return {"level": level, "next": torch.zeros_like(view.step)}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        level = carry["level"]
        # Template tokens may leave a level without masks: go on to the first one that has some.
        lowest = level.masked_fill(~view.masked, level.shape[1]).amin(dim=1)
        now = torch.maximum(carry["next"], lowest)
        final = now >= level.amax(dim=1)
        due = view.masked & (level <= now[:, None])
        chosen = due & (final[:, None] | (view.confidence >= self.skip))
        order = view.sureness.masked_fill(~due, -1.0)  # nothing due is less sure
        return Decision(commits(chosen), order=order), {"level": level, "next": now + 1}

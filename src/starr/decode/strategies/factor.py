"""Commit as many positions as stay jointly likely (Fast-dLLM's factor rule, arXiv:2505.22618).

With confidences sorted, c_(1) >= c_(2) >= ..., commit the first n for the largest n with (n + 1)(1 - c_(n)) < f, and
always the first; ties go to the lower position. The left side grows with n, so each rank can be judged by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.ranking import rank_of
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import SURE, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option
from starr.plugins import register


def released_count(fails: Tensor, rank: Tensor, masks: Tensor) -> Tensor:
    """Commits (B, 1) of the public code: up to the first failing rank, but everything when only the last rank fails."""
    first = rank.masked_fill(~fails, rank.shape[1]).amin(dim=1, keepdim=True)
    return torch.where(first < masks - 1, first, masks)


@register
@dataclass(frozen=True, kw_only=True)
class Factor(Strategy):
    """Commit the first n by confidence for the largest n with (n + 1)(1 - c_(n)) < factor, and always one."""

    name: ClassVar[str] = "factor"
    paper: ClassVar[str] = "Fast-dLLM, arXiv:2505.22618"
    sweep: ClassVar[Sweep] = Sweep(SURE, "factor", (0.25, 0.5, 1.0, 2.0))
    factor: float = option(1.0, "f: larger commits more per step", low=0.0, high=1e6)
    bug_compatible: bool = option(False, "as the public code: a failing last rank is committed too, and ties pass")

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        rank = rank_of(view.sureness, view.masked)
        threshold = 1.0 - self.factor / (rank + 2)
        if self.bug_compatible:
            fails = view.masked & (rank > 0) & (view.confidence < threshold)
            chosen = rank < released_count(fails, rank, view.masked.sum(dim=1, keepdim=True))
        else:
            chosen = (rank == 0) | ((rank + 2) * (1.0 - view.confidence) < self.factor)
        return Decision(commits(chosen & view.masked), threshold), carry

"""Commit every open position whose confidence reaches a fixed threshold.

Fast-dLLM, arXiv:2505.22618: commit {i masked : c_i >= tau}, and always the most confident one; ties go to the lower
position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from starr.strategy.base import Carry, Decision, StepView, Strategy, best_of, commits
from starr.strategy.members import register
from starr.strategy.registry import option


@register
@dataclass(frozen=True, kw_only=True)
class Threshold(Strategy):
    """Commit where confidence >= tau, and always the most confident position."""

    name: ClassVar[str] = "threshold"
    paper: ClassVar[str] = "Fast-dLLM, arXiv:2505.22618"
    tau: float = option(0.9, "commit where confidence is at least this", low=0.0, high=2.0)

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        chosen = view.masked & (view.confidence >= self.tau)
        chosen |= best_of(view.confidence, view.masked)
        return Decision(commits(chosen), torch.full_like(view.confidence, self.tau)), carry

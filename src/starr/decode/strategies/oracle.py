"""A rule that knows the text that will be written, to measure the most that a rule without that knowledge could gain.

It is no strategy for users and has no name in the registry: ``starr.research.limit`` gives it the text of another run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from starr.decode.strategies.base import Strategy
from starr.decode.view import Carry, Decision, StepView, commits


@dataclass(frozen=True)
class Oracle(Strategy):
    """Commits what agrees with ``target``, the canvas of another run; it sees the whole canvas as one window."""

    target: tuple[int, ...]
    name: ClassVar[str] = "oracle"
    paper: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Nothing to check: it has no options, and is not among the named strategies."""

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        known = view.proposal.clone()
        width = min(known.shape[1], len(self.target))
        known[:, :width] = torch.tensor(self.target[:width], device=known.device)
        agrees = view.masked & (view.proposal == known)
        confidence = view.confidence.masked_fill(~view.masked, -1.0)
        stuck = ~agrees.any(dim=1, keepdim=True) & view.masked
        best = torch.arange(known.shape[1], device=known.device) == confidence.argmax(dim=1, keepdim=True)
        return Decision(commits(agrees | (stuck & best)), tokens=known), carry

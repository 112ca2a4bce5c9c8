"""Commit masks from the left until the first one that is not sure (DMax's commit rule, arXiv:2604.08302).

The masks of the window, from left to right, are committed up to the first one with c < tau (strict); if that is the
leftmost, it alone is committed. Held tokens between masks do not end the run. DMax's embeddings of soft tokens and its
editing of decoded ones need a model trained for them and are not part of this rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import SURE, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class Leftmost(Strategy):
    """Commit masks from the left until the first one with confidence < tau, and always the leftmost."""

    name: ClassVar[str] = "leftmost"
    paper: ClassVar[str] = "DMax, arXiv:2604.08302"
    sweep: ClassVar[Sweep] = Sweep(SURE)
    tau: float = option(0.5, "stop at the first mask whose confidence is below this", low=0.0, high=2.0)

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        unsure = (view.masked & (view.confidence < self.tau)).cumsum(dim=1) > 0
        leftmost = view.masked & (view.masked.cumsum(dim=1) == 1)
        chosen = (view.masked & ~unsure) | leftmost
        order = -torch.arange(chosen.shape[1], device=chosen.device).expand_as(view.confidence).to(view.confidence)
        return Decision(commits(chosen), torch.full_like(view.confidence, self.tau), order=order), carry

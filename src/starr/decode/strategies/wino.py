"""Draft widely, then take back what the rest of the text does not support.

WINO, arXiv:2507.18578. A shadow block of masks, at the positions of the window and in the same forward, sees everything
except the token it stands for: signal "shadow" is the leave-one-out probability of every held token.

Draft: commit masked c > tau_draft, at most the top min(max(int(share * masked), 5), 20); or the best one if none is.
Verify, only in a step that drafts more than one: revoke held tokens (not those of this step) with shadow < tau_verify;
if they are as many as the last step's drafts, only the lowest (drafts - 1). Ties go to the lower position. A step
revokes fewer than the last one drafted, so after k steps at least k tokens stand, and a window closes within its width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.ranking import best_of, top_of
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import REVOKE, Sweep
from starr.decode.view import Carry, Decision, StepView, actions
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class Wino(Strategy):
    """Commit where confidence > tau_draft; revoke where the leave-one-out probability < tau_verify."""

    name: ClassVar[str] = "wino"
    paper: ClassVar[str] = "WINO, arXiv:2507.18578"
    sweep: ClassVar[Sweep] = Sweep(REVOKE, "tau_draft", (0.8, 0.7, 0.6, 0.4))
    signals: ClassVar[frozenset[str]] = frozenset({"shadow"})
    presets: ClassVar[dict[str, dict[str, float]]] = {"humaneval": {"tau_draft": 0.7}, "math": {"tau_draft": 0.7}}
    tau_draft: float = option(0.6, "draft where confidence is above this", low=0.0, high=2.0)
    tau_verify: float = option(0.9, "revoke where the leave-one-out probability is below this", low=0.0, high=2.0)
    share: float = option(0.7, "draft at most this share of the masks", low=0.0, high=1.0)
    least: int = option(5, "... or this many, if that is more", low=1)
    most: int = option(20, "... and never more than this many", low=1)

    def needs(self) -> Mapping[str, float]:
        return {"shadow": 1}

    def revokes(self) -> bool:
        return True

    def ends_within(self, masks: int, length: int, windows: int) -> int:
        return masks

    def begin(self, view: StepView) -> Carry:
        """The first step has nothing to verify; the public code starts at 30 drafts."""
        return {"drafts": torch.full_like(view.step, 30)}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        commit = self.draft(view)
        drafts = commit.sum(dim=1)
        shadow = view.extras["shadow"]
        doubted = view.held & (shadow < self.tau_verify) & (drafts > 1)[:, None]
        revoke = top_of(-shadow, doubted, (carry["drafts"] - 1).clamp(min=0))
        threshold = torch.where(view.masked, self.tau_draft, torch.full_like(view.confidence, self.tau_verify))
        return Decision(actions(commit, revoke), threshold, doubt=-shadow), {"drafts": drafts}

    def draft(self, view: StepView) -> Tensor:
        """(B, W) bool: what this step commits."""
        masks = view.masked.sum(dim=1)
        cap = (self.share * masks.double()).long().clamp(min=self.least).clamp(max=self.most)
        above = view.masked & (view.confidence > self.tau_draft)
        best = best_of(view.sureness, view.masked) & ~above.any(dim=1, keepdim=True)
        return best | top_of(view.sureness, above, cap)

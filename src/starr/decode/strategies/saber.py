"""Commit what is surer than the average commit so far, and take back what has lost the most confidence.

Saber, arXiv:2510.18165, with n = ``least``. At held positions c is the probability of the most likely token.
Threshold: the mean confidence of all commits so far (each position's last one; taken back or not); 1 before the first.
Commit masked c > threshold; if fewer than n, the n best. Then, unless no mask is left, take back
r = min(max(n // 2, ceil(k / backtrack)), k - 1) positions, k being the number just committed: those whose c fell most
since the last step (0 before the first), whether held or just committed; the latter simply stay masked. Ties go to the
lower position. Every step gains at least one token, so a canvas is filled within its length.

With blocks, all of this reaches from the canvas's start to the block's end, so earlier blocks may be taken back as
well, and text settles only at the end. Where fewer than n masks are left, the released code commits positions after
the block; here nothing after it is touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.confidence import resolved
from starr.decode.ranking import top_of
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import REVOKE, Sweep
from starr.decode.view import Carry, Decision, StepView, actions
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class Saber(Strategy):
    """Commit where confidence > the mean of past commits; revoke where it fell most."""

    name: ClassVar[str] = "saber"
    paper: ClassVar[str] = "Saber, arXiv:2510.18165"
    sweep: ClassVar[Sweep] = Sweep(REVOKE, "least", (1, 2, 3, 4))
    keeps: ClassVar[frozenset[str]] = frozenset({"ever", "with", "last", "known"})
    scope: ClassVar[str] = "back"
    least: int = option(2, "n: commit at least this many in a step", low=1)
    backtrack: int = option(8, "revoke one token per this many commits (and at least n // 2)", low=1)

    def revokes(self) -> bool:
        return True

    def ends_within(self, masks: int, length: int, windows: int) -> int:
        return masks

    def begin(self, view: StepView) -> Carry:
        """All (B, W): ever committed, with which confidence last, and that of the step before, where known."""
        zeros = torch.zeros_like(view.best, dtype=torch.float64)  # sums of grid values stay exact
        none = torch.zeros_like(view.masked)
        return {"ever": none, "with": zeros, "last": zeros, "known": none}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        count = carry["ever"].sum(dim=1)
        mean = torch.where(count > 0, carry["with"].sum(dim=1) / count.clamp(min=1), 1.0)
        value = resolved(torch.where(view.masked, view.confidence, view.best), view.sureness)
        above = view.masked & (value > mean[:, None])
        enough = (above.sum(dim=1) >= self.least)[:, None]
        best = top_of(view.sureness, view.masked, torch.full_like(view.step, self.least))
        commit = torch.where(enough, above, best)
        known = carry["known"]
        new = known.any(dim=1, keepdim=True) & ~known
        back = self.taken_back(view, commit, (value - carry["last"]).masked_fill(new, torch.inf))
        decision = Decision(actions(commit & ~back, back & ~commit), mean[:, None].float().expand_as(value))
        return decision, {
            "ever": carry["ever"] | commit,
            "with": torch.where(commit, value, carry["with"]),
            "last": torch.where(view.inside, value, 0.0),
            "known": view.inside,
        }

    def taken_back(self, view: StepView, commit: Tensor, rise: Tensor) -> Tensor:
        """(B, W) bool: positions that end the step masked although held or just committed."""
        made = commit.sum(dim=1)
        share = (made + self.backtrack - 1).div(self.backtrack, rounding_mode="floor")
        number = torch.minimum(share.clamp(min=self.least // 2), made - 1)
        done = ~(view.masked & ~commit).any(dim=1)
        return top_of(-rise, view.held | commit, number.masked_fill(done, 0))

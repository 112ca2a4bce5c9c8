"""Commit what is surer than the average commit so far, and take back what has lost the most confidence.

Saber, arXiv:2510.18165, with n = ``least``. At held positions c is the probability of the most likely token.
Threshold: the mean confidence of all commits so far (each position's last one; taken back or not), earlier windows
included; 1 before the first. Commit masked c > threshold; if fewer than n, the n best. Then, unless the window is
done, take back r = min(max(n // 2, ceil(k / backtrack)), k - 1) positions, k being the number just committed: those
whose c fell most since the last step (0 before the first), whether held or just committed; the latter simply stay
masked. Ties go to the lower position. Backtracking acts inside the window, because earlier windows are settled. Every
step gains at least one token, so a window closes within its width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from starr.strategy.base import Carry, Decision, StepView, Strategy, actions, top_of
from starr.strategy.members import register
from starr.strategy.registry import option


@register
@dataclass(frozen=True, kw_only=True)
class Saber(Strategy):
    """Commit where confidence > the mean of past commits; revoke where it fell most."""

    name: ClassVar[str] = "saber"
    paper: ClassVar[str] = "Saber, arXiv:2510.18165"
    revokes: ClassVar[bool] = True
    keeps: ClassVar[frozenset[str]] = frozenset({"total", "count"})
    least: int = option(2, "n: commit at least this many in a step", low=1)
    backtrack: int = option(8, "take back one for every this many commits (and n // 2 at least)", low=1)

    def begin(self, view: StepView) -> Carry:
        nothing = torch.zeros_like(view.step, dtype=torch.float64)
        return {
            "total": nothing,  # (B,) sum of "with" over all windows; float64 keeps sums of grid values exact
            "count": nothing,  # (B,) positions ever committed
            "with": torch.full_like(view.best, torch.nan, dtype=torch.float64),  # (B, W) NaN: never committed
            "last": torch.zeros_like(view.best),  # (B, W) confidence of the step before
        }

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        total, count = carry["total"], carry["count"]
        mean = torch.where(count > 0, total / count.clamp(min=1), 1.0)
        value = torch.where(view.masked, view.confidence, view.best)
        above = view.masked & (value > mean[:, None])
        enough = (above.sum(dim=1) >= self.least)[:, None]
        best = top_of(value, view.masked, torch.full_like(view.step, self.least))
        commit = torch.where(enough, above, best)
        back = self.taken_back(view, commit, value - carry["last"])
        decision = Decision(actions(commit & ~back, back & ~commit), mean[:, None].float().expand_as(value))
        gained = torch.where(commit, value - carry["with"].nan_to_num(), 0.0).sum(dim=1)
        first = (commit & carry["with"].isnan()).sum(dim=1)
        return decision, {
            "total": total + gained,
            "count": count + first,
            "with": torch.where(commit, value.double(), carry["with"]),
            "last": value,
        }

    def taken_back(self, view: StepView, commit: Tensor, rise: Tensor) -> Tensor:
        """(B, W) bool: positions that end the step masked although held or just committed."""
        made = commit.sum(dim=1)
        share = (made + self.backtrack - 1).div(self.backtrack, rounding_mode="floor")
        number = torch.minimum(share.clamp(min=self.least // 2), made - 1)
        done = ~(view.masked & ~commit).any(dim=1)
        return top_of(-rise, view.held | commit, number.masked_fill(done, 0))

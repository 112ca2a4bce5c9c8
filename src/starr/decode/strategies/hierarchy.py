"""Divide and conquer: the best of every run of masks, so that commits land far apart.

dInfer's hierarchical decoder: in every maximal run of masked positions commit the most confident one if c > low;
commit every c > tau; and always the most confident of all. Ties go to the lower position.

With ``revoke``, held positions whose most likely token has a probability < revoke_below are in doubt. They count as
masks: they join runs and may be chosen, and then get the most likely token. Choices are filled up with the next most
confident positions to one more than the doubted ones; doubted ones that are not chosen become masks again. So every
step leaves fewer masks, and a window closes within its width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.ranking import top_of, with_best
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import NEAR, Sweep
from starr.decode.view import Carry, Decision, StepView, actions, commits
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class Hierarchy(Strategy):
    """Commit the best of every run of masks above low, everything above tau, and always the most confident one."""

    name: ClassVar[str] = "hierarchy"
    paper: ClassVar[str] = "dInfer, arXiv:2510.08666"
    sweep: ClassVar[Sweep] = Sweep(NEAR)
    tau: float = option(0.9, "commit where confidence is above this", low=0.0, high=2.0)
    low: float = option(0.4, "confidence that the best of a run of masks must exceed", low=0.0, high=2.0)
    revoke: bool = option(False, "also revoke held tokens the model has become unsure of")
    revoke_below: float = option(0.4, "with revoke: revoke where the best probability is below this", low=0.0, high=2.0)

    def revokes(self) -> bool:
        return self.revoke

    def ends_within(self, masks: int, length: int, windows: int) -> int:
        return masks

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        threshold = torch.full_like(view.confidence, self.tau)
        if not self.revoke:
            chosen = self.chosen(view.confidence, view.sureness, view.masked)
            return Decision(commits(with_best(chosen, view.sureness, view.masked)), threshold), carry
        doubted = view.held & (view.best < self.revoke_below)
        value = torch.where(view.masked, view.confidence, view.best)
        score, open_ = torch.where(view.masked, view.sureness, view.best), view.masked | doubted
        chosen = self.chosen(value, score, open_)
        missing = (doubted.sum(dim=1) + 1 - chosen.sum(dim=1)).clamp_min(0)
        chosen |= top_of(score, open_ & ~chosen, missing)
        revised = chosen & doubted & (view.proposal != view.tokens)
        return Decision(actions(chosen & view.masked, doubted & ~chosen, revised), threshold), carry

    def chosen(self, value: Tensor, score: Tensor, open_: Tensor) -> Tensor:
        """(B, W) bool: the best of every run of ``open_`` above low, and all above tau."""
        return (best_of_runs(score, open_) & (value > self.low)) | (open_ & (value > self.tau))


def best_of_runs(score: Tensor, among: Tensor) -> Tensor:
    """(B, W) bool: the highest score of every maximal run of ``among``; ties to the lower position."""
    width = score.shape[1]
    starts = among & ~among.roll(1, dims=1)
    starts[:, 0] = among[:, 0]
    run = starts.cumsum(dim=1)  # positions between runs share the number of the run before them, and rank last in it
    ranked = score.masked_fill(~among, -torch.inf)
    lowest = torch.full((score.shape[0], width + 1), -torch.inf, device=score.device)
    top = lowest.scatter_reduce(1, run, ranked, "amax")
    position = torch.arange(width, device=score.device).expand_as(run)
    found = position.masked_fill(~(among & (ranked == top.gather(1, run))), width)
    first = torch.full_like(top, width, dtype=torch.int64).scatter_reduce(1, run, found, "amin")
    return position == first.gather(1, run)

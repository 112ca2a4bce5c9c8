"""Divide and conquer: the best of every run of masks, so that commits land far apart.

dInfer's hierarchical decoder: in every maximal run of masked positions commit the most confident one if c > low;
commit every c > tau; and always the most confident of all. Ties go to the lower position.

With ``revoke``, held positions whose most likely token has a probability < revoke_below become masks again. Commits
are then filled up with the next most confident masks to one more than the revocations; where too few masks are left,
only the least certain held positions are revoked, one fewer than commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from starr.strategy.base import Carry, Decision, StepView, Strategy, actions, best_of, top_of
from starr.strategy.members import register
from starr.strategy.registry import option


@register
@dataclass(frozen=True, kw_only=True)
class Hierarchy(Strategy):
    """Commit the best of every run of masks above low, everything above tau, and always the most confident one."""

    name: ClassVar[str] = "hierarchy"
    paper: ClassVar[str] = "dInfer, arXiv:2510.08666"
    tau: float = option(0.9, "commit where confidence is above this", low=0.0, high=2.0)
    low: float = option(0.4, "what the best of a run of masks must exceed", low=0.0, high=2.0)
    revoke: bool = option(False, "also revoke held tokens the model has become unsure of")
    revoke_below: float = option(0.4, "with revoke: revoke where the best probability is below this", low=0.0, high=2.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        # Only the revoking variant needs held positions observed and delays settling.
        object.__setattr__(self, "revokes", self.revoke)

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        score = view.confidence
        chosen = best_of_runs(score, view.masked) & (score > self.low)
        chosen |= view.masked & (score > self.tau)
        chosen |= best_of(score, view.masked)
        threshold = torch.full_like(score, self.tau)
        if not self.revoke:
            return Decision(actions(chosen), threshold), carry
        doubted = view.held & (view.best < self.revoke_below)
        missing = (doubted.sum(dim=1) + 1 - chosen.sum(dim=1)).clamp_min(0)
        chosen |= top_of(score, view.masked & ~chosen, missing)
        revoked = top_of(-view.best, doubted, chosen.sum(dim=1) - 1)
        return Decision(actions(chosen, revoked), threshold), carry


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

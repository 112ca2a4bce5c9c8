"""Commit every open position whose confidence reaches a fixed threshold. Releases differ in the details:

| origin | compared | when too few reach it |
|---|---|---|
| fast_dllm | c >= tau | the most confident position is always committed |
| fast_dllm_v2 | c > tau | the most confident position is always committed |
| llada2, sdar | c > tau | if fewer than the step's quota, the quota's most confident ones and no others |

The quota of step s is block // steps, and one more in the first block % steps steps; it comes from the block's length,
not from its masks. Behind the last step it is 1. Ties go to the lower position. Fast-dLLM: arXiv:2505.22618.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.ranking import top_of, with_best
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.schedule import share_of_step
from starr.decode.strategies.sweep import SURE, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option
from starr.plugins import register

QUOTA = ("llada2", "sdar")


@register
@dataclass(frozen=True, kw_only=True)
class Threshold(Strategy):
    """Commit where confidence >= tau, and always the most confident position."""

    name: ClassVar[str] = "threshold"
    paper: ClassVar[str] = "Fast-dLLM, arXiv:2505.22618"
    sweep: ClassVar[Sweep] = Sweep(SURE)
    tau: float = option(0.9, "commit where confidence is at least this", low=0.0, high=2.0)
    origin: str = option(
        "fast_dllm",
        "whose rule: fast_dllm compares with >=, the others with >",
        choices=("fast_dllm", "fast_dllm_v2", *QUOTA),
    )
    steps: int | None = option(
        None, "llada2, sdar: steps of a block, which give quotas; none is one per position", low=1
    )

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        reached = view.confidence >= self.tau if self.origin == "fast_dllm" else view.confidence > self.tau
        chosen = view.masked & reached
        if self.origin in QUOTA:
            quota = self.quota(view)
            enough = chosen.sum(dim=1) >= quota
            chosen = torch.where(enough[:, None], chosen, top_of(view.sureness, view.masked, quota))
        else:
            chosen = with_best(chosen, view.sureness, view.masked)
        return Decision(commits(chosen), torch.full_like(view.confidence, self.tau)), carry

    def quota(self, view: StepView) -> Tensor:
        """(B,) int64: the fewest commits of this step."""
        steps = view.block if self.steps is None else torch.full_like(view.block, self.steps).minimum(view.block)
        share = share_of_step(view.block, steps, view.step)
        return torch.where(view.step < steps, share, 1)

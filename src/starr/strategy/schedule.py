"""Commit a fixed number of positions per step, the best by some score (LLaDA's schedule, arXiv:2502.09992)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from starr.strategy.base import Carry, Decision, StepView, Strategy, commits, top_of
from starr.strategy.registry import option


def steps_per_window(view: StepView, steps: int) -> Tensor:
    """T_b (B,): the row's steps shared evenly among its windows, at least one."""
    return torch.div(steps, view.windows, rounding_mode="floor").clamp_min(1)


def share_of_step(masks: Tensor, steps: Tensor, step: Tensor) -> Tensor:
    """Commits (B,) of a step: masks // steps, one more in the first masks % steps; the steps sum to masks."""
    return torch.div(masks, steps, rounding_mode="floor") + (step < masks % steps)


@dataclass(frozen=True, kw_only=True)
class Scheduled(Strategy):
    """Commit the highest scores of each step, as many as the schedule says; ties go to the lower position."""

    steps: int | None = option(None, "steps over all windows; none commits one position per step", low=1)

    def score(self, view: StepView) -> Tensor:
        """What the masked positions are ranked by (B, W), highest first."""
        raise NotImplementedError

    def begin(self, view: StepView) -> Carry:
        return {"masks": view.masked.sum(dim=1)}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        masks = carry["masks"]
        if self.steps is None:
            count = torch.ones_like(masks)
        else:
            count = share_of_step(masks, steps_per_window(view, self.steps), view.step)
        return Decision(commits(top_of(self.score(view), view.masked, count))), carry

"""Commit a number of positions per step that a schedule gives, the best by some score.

- LLaDA (arXiv:2502.09992): the masks of the window in even shares, the larger ones first.
- Dream (arXiv:2508.15487): time runs from 1 to eps in T equal parts; step k goes from t to s and commits
  floor(n * (1 - s / t)) of the n positions still masked, the last step all of them.

Where Dream's schedule gives less than 1 a step commits 1: its code then spends a forward on nothing. Ties go to the
lower position.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from starr.decode.ranking import top_of
from starr.decode.strategies.base import KnownModel, Strategy
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option


def steps_per_window(view: StepView, steps: int | None) -> Tensor:
    """T_b (B,): the row's steps shared evenly among its windows, at least one; none is one for each position."""
    if steps is None:
        return view.width.clamp_min(1)
    return torch.div(steps, view.windows, rounding_mode="floor").clamp_min(1)


def share_of_step(masks: Tensor, steps: Tensor, step: Tensor) -> Tensor:
    """Commits (B,) of a step: masks // steps, one more in the first masks % steps; the steps sum to masks."""
    return torch.div(masks, steps, rounding_mode="floor") + (step < masks % steps)


def dream_chance(steps: Tensor, step: Tensor, eps: float) -> Tensor:
    """1 - s / t (B,) float32 of a step; 1 from the last step on."""
    span = 1.0 - eps
    return torch.where(step >= steps - 1, 1.0, span / (steps - step * span))


def dream_share(masks: Tensor, steps: Tensor, step: Tensor, eps: float) -> Tensor:
    """Commits (B,) of a step with ``masks`` (B,) left: floor(masks * (1 - s / t)), all from the last step on."""
    # 1 - s / t multiplied out: whole numbers stay whole, so that no share is lost to rounding
    span = 1.0 - eps
    count = torch.floor(masks * span / (steps - step * span)).to(masks.dtype)
    return torch.where(step >= steps - 1, masks, count)


@dataclass(frozen=True, kw_only=True)
class Scheduled(Strategy):
    """Commit the highest scores of each step, as many as the schedule says and at least one."""

    steps: int | None = option(None, "steps over all windows; none commits one position per step", low=1)
    schedule: str = option(
        "auto",
        "whose schedule: llada evenly, dream by time; auto is the model's own",
        choices=("auto", "llada", "dream"),
    )
    eps: float = option(0.001, "with Dream's schedule: where time ends", low=0.0, high=0.5)

    def bind(self, model: KnownModel) -> Self:
        """A copy with Dream's schedule on models of that family; ``auto`` is LLaDA's on all others."""
        own = self.schedule == "auto" and model.spec.family == "dream"
        return replace(self, schedule="dream") if own else self

    def score(self, view: StepView) -> Tensor:
        """What the masked positions are ranked by (B, W), highest first."""
        raise NotImplementedError

    def begin(self, view: StepView) -> Carry:
        return {"masks": view.masked.sum(dim=1)}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        score = self.score(view)
        return Decision(commits(top_of(score, view.masked, self.count(view, carry["masks"]))), order=score), carry

    def count(self, view: StepView, masks: Tensor) -> Tensor:
        """What the schedule gives (B,), at least 1; ``masks`` (B,) are those of the window when it opened."""
        if self.schedule == "dream":
            left, steps = view.masked.sum(dim=1), steps_per_window(view, self.steps)
            return dream_share(left, steps, view.step, self.eps).clamp_min(1)
        if self.steps is None:
            return torch.ones_like(masks)
        return share_of_step(masks, steps_per_window(view, self.steps), view.step).clamp_min(1)

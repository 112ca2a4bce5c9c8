"""The least uncertain positions first, on Dream's own schedule (arXiv:2508.15487).

Time runs from 1 to eps in T equal parts; step k goes from t to s and commits floor(n * (1 - s / t)) of the n positions
still masked, the last step all of them; ties go to the lower position. A known quirk of that schedule: with T steps for
T positions the first step commits none and the last two. Such an empty step is filled by ``enforce``, which
then commits the most confident position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from starr.strategy.base import Carry, Decision, StepView, Strategy, commits, top_of
from starr.strategy.members import register
from starr.strategy.registry import option
from starr.strategy.schedule import steps_per_window


def dream_share(masks: Tensor, steps: Tensor, step: Tensor, eps: float) -> Tensor:
    """Commits (B,) of a step with ``masks`` (B,) left: floor(masks * (1 - s / t)), all from the last step on."""
    # 1 - s / t multiplied out: whole numbers stay whole, so that no share is lost to rounding
    span = 1.0 - eps
    count = torch.floor(masks * span / (steps - step * span)).to(masks.dtype)
    return torch.where(step >= steps - 1, masks, count)


@register
@dataclass(frozen=True, kw_only=True)
class Entropy(Strategy):
    """Commit where entropy is lowest, as many as Dream's time schedule gives."""

    name: ClassVar[str] = "entropy"
    paper: ClassVar[str] = "Dream, arXiv:2508.15487"
    signals: ClassVar[frozenset[str]] = frozenset({"entropy"})
    steps: int | None = option(None, "steps over all windows; none takes as many as the window has positions", low=1)
    eps: float = option(0.001, "where time ends", low=0.0, high=0.5)

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        assert view.entropy is not None
        steps = view.width.clamp_min(1) if self.steps is None else steps_per_window(view, self.steps)
        count = dream_share(view.masked.sum(dim=1), steps, view.step, self.eps)
        return Decision(commits(top_of(-view.entropy, view.masked, count))), carry

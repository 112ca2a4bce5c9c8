"""The clearest positions first: ranked by the gap between the two likeliest tokens (Dream's ``topk_margin``).

Margins p1 - p2 near 1 are told apart by what they lack, 1 - p1 + p2 = p1 (exp(-odds) + exp(-gap)), odds being the
log-odds of the likeliest token and gap its lead in logits. Neither saturates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.confidence import SURE, on_logit_grid
from starr.decode.strategies.schedule import Scheduled
from starr.decode.strategies.sweep import FIXED, TOKENS_PER_STEP, Sweep
from starr.decode.view import StepView
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class Margin(Scheduled):
    """Commit where the likeliest token leads by most, one position per step or by the schedule."""

    name: ClassVar[str] = "margin"
    paper: ClassVar[str] = "Dream, arXiv:2508.15487"
    sweep: ClassVar[Sweep] = Sweep(FIXED, "steps", TOKENS_PER_STEP)
    signals: ClassVar[frozenset[str]] = frozenset({"margin", "gap"})

    def score(self, view: StepView) -> Tensor:
        assert view.margin is not None
        if view.sure is None or view.gap is None:
            return view.margin
        lack = torch.logaddexp(1.0 - view.sure, -view.gap)
        near = (view.margin >= SURE) & (view.sure > 1.0)
        return torch.where(near, 1.0 + on_logit_grid(-lack), view.margin)

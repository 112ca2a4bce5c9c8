"""The clearest positions first: ranked by the gap between the two likeliest tokens (Dream's ``topk_margin``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from starr.decode.strategies.members import register
from starr.decode.strategies.schedule import Scheduled
from starr.decode.view import StepView


@register
@dataclass(frozen=True, kw_only=True)
class Margin(Scheduled):
    """Commit where the likeliest token leads by most, one position per step or by LLaDA's schedule."""

    name: ClassVar[str] = "margin"
    paper: ClassVar[str] = "Dream, arXiv:2508.15487"
    signals: ClassVar[frozenset[str]] = frozenset({"margin"})

    def score(self, view: StepView) -> Tensor:
        assert view.margin is not None
        return view.margin

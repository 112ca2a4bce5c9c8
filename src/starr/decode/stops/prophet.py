"""Commit everything at once when the answer is clear (Prophet, arXiv:2508.19982)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from starr.decode.stops.base import Moment, StopRule, Verdict
from starr.decode.view import StepView
from starr.named import option
from starr.plugins import register

if TYPE_CHECKING:
    from starr.decode.request import Request


@register
@dataclass(frozen=True, kw_only=True)
class Prophet(StopRule):
    """Commit everything once the answer is clear: the mean logit gap of its two best tokens >= the bar for this time.

    The gap is averaged over the ``length`` canvas positions from ``start``, masked or held, wherever the window is; or
    over all masks of the canvas if ``start`` is none. The bar falls with (step + 1) / T at 0.33 and 0.67, T being
    max_forwards or else the number of masks. What lies outside the window is committed by one more forward.
    """

    name: ClassVar[str] = "prophet"
    paper: ClassVar[str] = "Prophet, arXiv:2508.19982"
    signals: ClassVar[frozenset[str]] = frozenset({"gap"})
    start: int | None = option(None, "first answer position on the canvas", low=0)
    length: int = option(5, "answer positions", low=1)
    early: float = option(7.5, "bar in the first third", low=0.0)
    middle: float = option(5.0, "bar in the second third", low=0.0)
    late: float = option(2.5, "bar after that", low=0.0)

    def watches(self, request: Request) -> range:
        first = request.start + (self.start or 0)
        return range(first, len(request.tokens) if self.start is None else first + self.length)

    def judge(self, view: StepView, moment: Moment) -> Verdict:
        assert moment.whole is not None
        whole = moment.whole
        answer = whole.masked
        if self.start is not None:
            answer = whole.open & (whole.position >= self.start) & (whole.position < self.start + self.length)
        count = answer.sum(dim=1)
        mean = whole.gap.masked_fill(~answer, 0.0).sum(dim=1) / count.clamp(min=1)
        end = (count > 0) & (mean >= self.bar((moment.total + 1) / whole.planned))
        return Verdict(end, view.masked, torch.zeros_like(end))

    def bar(self, progress: Tensor) -> Tensor:
        """(B,) float: what the mean gap is compared with at this time."""
        late = torch.where(progress < 0.67, self.middle, self.late)
        return torch.where(progress < 0.33, self.early, late)

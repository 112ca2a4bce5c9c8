"""The most confident positions first, a fixed number per step: LLaDA's order and the paper's "Conf." baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from starr.decode.strategies.schedule import Scheduled
from starr.decode.strategies.sweep import FIXED, Sweep
from starr.decode.view import StepView
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class Confidence(Scheduled):
    """Commit the most confident positions, one per step or as many as the schedule gives."""

    name: ClassVar[str] = "confidence"
    paper: ClassVar[str] = "LLaDA, arXiv:2502.09992"
    sweep: ClassVar[Sweep] = Sweep(FIXED, "steps", (1, 2, 4, 8))

    def score(self, view: StepView) -> Tensor:
        return view.sureness

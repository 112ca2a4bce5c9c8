"""Relax the threshold near positions that are already certain.

LocalLeap, arXiv:2510.07081: anchors are the masked positions with c >= tau. Within ``radius`` of an anchor a position
needs only c >= relaxed, elsewhere c >= tau; the most confident one is always committed, ties to the lower position.
Radius 0 or relaxed = tau is Fast-dLLM's threshold. Distances are counted inside the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch.nn import functional

from starr.decode.ranking import with_best
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import NEAR, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.errors import InputError
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class LocalLeap(Strategy):
    """Commit where confidence >= tau, or >= relaxed close to such a position, and always the most confident one."""

    name: ClassVar[str] = "localleap"
    paper: ClassVar[str] = "LocalLeap, arXiv:2510.07081"
    sweep: ClassVar[Sweep] = Sweep(NEAR, "relaxed", (0.85, 0.75, 0.65, 0.5))
    tau: float = option(0.9, "commit where confidence is at least this; such positions are anchors", low=0.0, high=2.0)
    relaxed: float = option(0.75, "confidence that is enough near an anchor; at most tau", low=0.0, high=2.0)
    radius: int = option(4, "how far an anchor reaches, in positions", low=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.relaxed > self.tau:
            raise InputError(
                f"localleap: relaxed must be at most tau ({self.tau:g}), got {self.relaxed:g}.", param="relaxed"
            )

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        anchor = view.masked & (view.confidence >= self.tau)
        reach = min(self.radius, view.masked.shape[1])
        near = functional.max_pool1d(anchor.float()[:, None], 2 * reach + 1, stride=1, padding=reach)[:, 0] > 0
        threshold = torch.full_like(view.confidence, self.tau).masked_fill(near, self.relaxed)
        chosen = view.masked & (view.confidence >= threshold)
        chosen = with_best(chosen, view.sureness, view.masked)
        return Decision(commits(chosen), threshold), carry

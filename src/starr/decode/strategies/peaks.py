"""Commit certain positions, and isolated peaks of confidence together.

Dependencies between tokens are mostly local: positions far apart can be committed in one step at a confidence where
neighbours cannot. A masked position is a peak if no masked position within ``radius`` of it is more confident; among
equals the lower position is the peak. Commit {c >= high} and {c >= low and peak}, and always the most confident one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
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
class Peaks(Strategy):
    """Commit where confidence >= high, and local maxima with confidence >= low, and always the most confident one."""

    name: ClassVar[str] = "peaks"
    paper: ClassVar[str] = "this project"
    sweep: ClassVar[Sweep] = Sweep(NEAR, "high")
    high: float = option(0.9, "commit where confidence is at least this", low=0.0, high=2.0)
    low: float = option(0.5, "confidence that is enough for the most confident position nearby", low=0.0, high=2.0)
    radius: int = option(4, "how many positions on either side are nearby", low=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise InputError(f"peaks: low must be at most high ({self.high:g}), got {self.low:g}.", param="low")

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        peak = peaks_of(view.confidence, view.masked, self.radius)
        threshold = torch.full_like(view.confidence, self.high).masked_fill(peak, self.low)
        chosen = view.masked & (view.confidence >= threshold)
        chosen = with_best(chosen, view.sureness, view.masked)
        return Decision(commits(chosen), threshold), carry


def peaks_of(score: Tensor, among: Tensor, radius: int) -> Tensor:
    """(B, W) bool: above every one of ``among`` to the left and not below any to the right, within radius."""
    reach = min(radius, score.shape[1])
    if reach == 0:
        return among
    ranked = score.masked_fill(~among, -torch.inf)
    padded = functional.pad(ranked, (reach, reach), value=-torch.inf)
    highest = functional.max_pool1d(padded[:, None], reach, stride=1)[:, 0]  # of the ``reach`` positions from each on
    width = score.shape[1]
    return among & (ranked > highest[:, :width]) & (ranked >= highest[:, reach + 1 : reach + 1 + width])

"""Commit the longest run of the surest positions whose joint entropy stays within a bound.

EB-Sampler, arXiv:2505.24857: order the masked positions by an error proxy (entropy ascending, or confidence descending;
ties to the lower position). With their entropies h_1, h_2, ... in that order, commit the longest prefix k with
sum(h_1..h_k) - max(h_1..h_k) <= gamma. The first always passes; gamma 0 adds only what costs no entropy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import SURE, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class EntropyBound(Strategy):
    """Commit the surest positions while their summed entropy minus its largest term is <= gamma."""

    name: ClassVar[str] = "eb"
    paper: ClassVar[str] = "EB-Sampler, arXiv:2505.24857"
    sweep: ClassVar[Sweep] = Sweep(SURE, "gamma", (0.01, 0.03, 0.1, 1.0))
    signals: ClassVar[frozenset[str]] = frozenset({"entropy"})
    gamma: float = option(0.1, "bound on the joint entropy; inf commits everything", low=0.0)
    unit: str = option("nats", "unit of gamma", choices=("nats", "bits"))
    order: str = option("entropy", "which positions come first", choices=("entropy", "confidence"))

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        assert view.entropy is not None
        proxy = view.entropy if self.order == "entropy" else -view.sureness
        order = proxy.masked_fill(~view.masked, torch.inf).argsort(dim=1, stable=True)
        cost = view.entropy.masked_fill(~view.masked, 0.0).gather(1, order)
        excess = cost.cumsum(dim=1) - cost.cummax(dim=1).values
        within = excess <= self.gamma * (math.log(2.0) if self.unit == "bits" else 1.0)
        return Decision(commits(torch.empty_like(within).scatter_(1, order, within) & view.masked)), carry

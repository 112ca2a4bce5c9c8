"""Give tokens that stay the most likely a growing credit, and apply the threshold to the sum.

CreditDecoding, arXiv:2510.06133. A credit C (B, W, V), zero at first, shrinks by ``decay`` each step; then every
masked position adds p^gamma to its most likely token, p being that token's probability. Fused logits are logits +
alpha ln(1 + C). Commit the fused argmax (ties to the lower token id) where its fused probability c >= tau, and always
the most confident one (ties to the lower position). Alpha 0 is the plain threshold. Tokens are the argmax:
temperature does not apply.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.confidence import on_grid
from starr.decode.ranking import with_best
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import SURE, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class Credit(Strategy):
    """Commit where the confidence with credit for past agreement is >= tau."""

    name: ClassVar[str] = "credit"
    paper: ClassVar[str] = "CreditDecoding, arXiv:2510.06133"
    sweep: ClassVar[Sweep] = Sweep(SURE)
    signals: ClassVar[frozenset[str]] = frozenset({"distribution"})
    tau: float = option(0.9, "commit where the fused confidence is at least this", low=0.0, high=2.0)
    alpha: float = option(0.7, "weight of the credit in the logits", low=0.0)
    decay: float = option(0.8, "beta: share of the credit that a step keeps", low=0.0, high=1.0)
    gamma: float = option(0.2, "exponent of the probability that is credited", low=0.0)

    def begin(self, view: StepView) -> Carry:
        assert view.distribution is not None
        return {"credit": torch.zeros_like(view.distribution)}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        assert view.distribution is not None
        token = view.distribution.argmax(dim=2, keepdim=True)
        gain = view.best.pow(self.gamma).masked_fill(~view.masked, 0.0)[..., None]
        credit = (carry["credit"] * self.decay).scatter_add_(2, token, gain.to(view.distribution.dtype))
        fused, confidence = likeliest(credit.log1p().mul_(self.alpha).add_(view.distribution))
        confidence = confidence.masked_fill(view.confidence == 0.0, 0.0)  # put last on purpose, as end-of-text may be
        chosen = view.masked & (confidence >= self.tau)
        chosen = with_best(chosen, confidence, view.masked)
        threshold = torch.full_like(view.confidence, self.tau)
        return Decision(commits(chosen), threshold, tokens=fused), {"credit": credit}


def likeliest(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The most likely token (B, W) and its probability, on the grid that proposals are rounded to."""
    top, token = logits.max(dim=2)
    total = (logits - top[..., None]).exp_().sum(dim=2)
    return token, on_grid(total.reciprocal())

"""A threshold that lets a few near misses pass when guidance away from the past favours them, after a history gate.

TACG, arXiv:2607.03236. E (B, W, V) is a moving average of the logits: the first ones, then decay E + (1 - decay)
logits after each step. Guided logits = E + (1 + weight)(logits - E); bonus = max(0, guided probability - E's
probability) of the proposal; score = c + lambda bonus.
Candidates: masked c > tau; and of those with floor < c <= tau the best by score, at most min(extra, ceil(share *
max(1, number above tau))). If there is none at all, the ``fallback`` best by score. Gate: of these commit those whose
proposal has been the same for ``steps`` steps (this one included) or whose c >= escape; if none passes, the best by
score. Ties go to the lower position. The token is the proposal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.confidence import on_grid
from starr.decode.ranking import best_of, top_of
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import SURE, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option
from starr.plugins import register

LOWEST = -1e4
"""Stands for -inf, whose differences would not be numbers."""


@register
@dataclass(frozen=True, kw_only=True)
class Tacg(Strategy):
    """Commit where confidence > tau, and a few near misses that guidance favours, if their history is steady."""

    name: ClassVar[str] = "tacg"
    paper: ClassVar[str] = "TACG, arXiv:2607.03236"
    sweep: ClassVar[Sweep] = Sweep(SURE)
    signals: ClassVar[frozenset[str]] = frozenset({"distribution"})
    presets: ClassVar[dict[str, dict[str, float]]] = {"humaneval": {"rerank": 2.0, "floor": 0.74, "escape": 0.96}}
    tau: float = option(0.9, "candidates have a confidence above this", low=0.0, high=2.0)
    floor: float = option(0.8, "near misses have a confidence above this", low=0.0, high=2.0)
    extra: int = option(2, "at most this many near misses in a step", low=0)
    share: float = option(0.25, "... and this share of the candidates, rounded up", low=0.0, high=1.0)
    decay: float = option(0.95, "share of the average logits that a step keeps", low=0.0, high=1.0)
    weight: float = option(0.3, "w: strength of the guidance away from the average", low=0.0)
    rerank: float = option(0.05, "lambda: weight of the guidance bonus in the score", low=0.0)
    steps: int = option(3, "a proposal passes the gate after this many equal steps", low=1)
    escape: float = option(0.95, "... or with a confidence of at least this", low=0.0, high=2.0)
    fallback: int = option(1, "candidates if there are none above tau and no near misses", low=1)

    def begin(self, view: StepView) -> Carry:
        """The average logits (B, W, V), the last proposal (B, W; -1: none), and for how many steps it was the same."""
        assert view.distribution is not None
        zero = torch.zeros_like(view.tokens)
        return {"average": view.distribution.clamp(min=LOWEST), "token": zero - 1, "equal": zero}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        assert view.distribution is not None
        logits, average = view.distribution.clamp(min=LOWEST), carry["average"]
        guided = torch.lerp(average, logits, 1.0 + self.weight)
        bonus = (probability(guided, view.proposal) - probability(average, view.proposal)).clamp(min=0.0)
        score = view.confidence + on_grid(self.rerank * bonus)
        wanted = self.candidates(view, score)
        equal = carry["equal"] * (view.proposal == carry["token"]) + 1
        passed = wanted & ((equal >= self.steps) | (view.confidence >= self.escape))
        chosen = torch.where(passed.any(dim=1, keepdim=True), passed, best_of(score, wanted))
        return Decision(commits(chosen), torch.full_like(view.confidence, self.tau)), {
            "average": torch.lerp(logits, average, self.decay),
            "token": view.proposal,
            "equal": equal,
        }

    def candidates(self, view: StepView, score: Tensor) -> Tensor:
        """(B, W) bool: what the gate is asked about; at least one while masks remain."""
        above = view.masked & (view.confidence > self.tau)
        near = view.masked & (view.confidence > self.floor) & ~above
        budget = (self.share * above.sum(dim=1).clamp(min=1)).ceil().long().clamp(max=self.extra)
        wanted = above | top_of(score, near, budget)
        fallback = top_of(score, view.masked, torch.full_like(view.step, self.fallback))
        return torch.where(wanted.any(dim=1, keepdim=True), wanted, fallback)


def probability(logits: Tensor, token: Tensor) -> Tensor:
    """Probability (B, W) of the given token under logits (B, W, V)."""
    chosen = logits.gather(2, token[..., None])[..., 0]
    return (chosen - logits.logsumexp(dim=2)).exp()

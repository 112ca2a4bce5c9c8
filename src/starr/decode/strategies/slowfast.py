"""Explore slowly until the reach of certainty is stable, then fill that span fast.

SlowFast Sampling, arXiv:2506.10848. A window is decoded in cycles; ``start`` is where the last one ended.
Slow phase, ``explore`` steps: estimate = start + the farthest masked offset with c >= tau_reach, plus 1 (start + 1 if
none). Once two estimates lie close (their standard deviation < ``spread``) the latest is the span's end; else it is the
integer mean of the last two. Fill anywhere in [start, width). Fast phase: fill in [start, end) until it has no masks;
then start = end. To fill is to commit all c >= tau_slow or tau_fast if these are more than one, else the best one; ties
go to the lower position. Every span is at least one position, so cycles advance. The paper skips recomputing what lies
after the span in its fast phase; here that is a cache's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.ranking import best_of
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import NEAR, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class SlowFast(Strategy):
    """Explore to find a span where confidence >= tau_reach, then fill it at confidence >= tau_fast."""

    name: ClassVar[str] = "slowfast"
    paper: ClassVar[str] = "SlowFast Sampling, arXiv:2506.10848"
    sweep: ClassVar[Sweep] = Sweep(NEAR, "tau_fast")
    presets: ClassVar[dict[str, dict[str, float]]] = {"dream": {"tau_reach": 0.1, "tau_slow": 0.8}}
    explore: int = option(6, "steps of every slow phase", low=1)
    tau_reach: float = option(0.3, "a span may reach to the farthest confidence of at least this", low=0.0, high=2.0)
    spread: float = option(1.0, "two estimates with a standard deviation below this fix the span", low=0.0)
    tau_slow: float = option(0.9, "slow phase: commit together where confidence is at least this", low=0.0, high=2.0)
    tau_fast: float = option(0.9, "fast phase: commit together where confidence is at least this", low=0.0, high=2.0)

    def begin(self, view: StepView) -> Carry:
        """All (B,): the cycle's span, slow steps taken, the last estimate (0: none), whether the span is fixed."""
        zero = torch.zeros_like(view.step)
        return {"start": zero, "end": zero, "slow": zero, "estimate": zero, "fixed": zero.bool()}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        state = next_cycle(view, carry, self.explore)
        slow = state["slow"] < self.explore
        reached = self.explored(view, state)
        state = {name: torch.where(slow, reached[name], old) for name, old in state.items()}
        index = torch.arange(view.masked.shape[1], device=view.masked.device)
        last = torch.where(slow, view.width, state["end"])
        open_ = view.masked & (index >= state["start"][:, None]) & (index < last[:, None])
        tau = torch.where(slow, self.tau_slow, torch.full_like(view.confidence[:, 0], self.tau_fast))[:, None]
        above = open_ & (view.confidence >= tau)
        chosen = torch.where(above.sum(dim=1, keepdim=True) > 1, above, best_of(view.sureness, open_))
        return Decision(commits(chosen), tau.expand_as(view.confidence)), state

    def explored(self, view: StepView, state: Carry) -> dict[str, Tensor]:
        """The state after one more slow step."""
        index = torch.arange(view.masked.shape[1], device=view.masked.device)
        start, before = state["start"], state["estimate"]
        sure = view.masked & (view.confidence >= self.tau_reach) & (index >= start[:, None])
        farthest = torch.where(sure, index + 1, 0).amax(dim=1)
        estimate = torch.minimum(torch.maximum(farthest, start + 1), view.width)
        close = (before > 0) & ((estimate - before).abs() < 2 * self.spread)
        mean = (estimate + before).div(2, rounding_mode="floor")
        end = torch.where(close | (before == 0), estimate, mean)
        return {
            "start": start,
            "end": torch.where(state["fixed"], state["end"], end),
            "slow": state["slow"] + 1,
            "estimate": estimate,
            "fixed": state["fixed"] | close,
        }


def next_cycle(view: StepView, carry: Carry, explore: int) -> dict[str, Tensor]:
    """The state with a new slow phase begun in rows whose fast phase has no masks left in [start, end)."""
    index = torch.arange(view.masked.shape[1], device=view.masked.device)
    unfinished = (view.masked & (index < carry["end"][:, None])).any(dim=1)
    over = (carry["slow"] >= explore) & ~unfinished
    fresh = {"start": carry["end"], "end": carry["end"]}
    return {name: torch.where(over, fresh.get(name, torch.zeros_like(old)), old) for name, old in carry.items()}

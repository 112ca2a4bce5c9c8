"""Commit where the prediction is both confident and no longer moving.

KLASS, arXiv:2511.05664. KL_t = sum q_t ln((q_t + 1e-12) / (q_t-1 + 1e-12)) of each position's distribution over the
vocabulary, with q = 0 before the first step, so that the first KL is huge. Ready: masked, the last ``history`` KLs
all < kappa (so there must be as many) and c > tau. Commit all that are ready, or only the most confident or the
steadiest of them; if none is, the ``fallback`` most confident (LLaDA's schedule with as many steps as tokens gives
1). Ties go to the lower position.

With blocks, commits stay in the first block that has masks, but every position's history goes on from the first step:
the window is the whole rest of the canvas, and caches that follow the block have only one. As in the released code,
nothing is ready in the first ``history`` - 1 steps of a block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from starr.decode.confidence import on_grid
from starr.decode.ranking import best_of, top_of
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.blocks import in_first_block
from starr.decode.strategies.sweep import SURE, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option
from starr.plugins import register

EPSILON = 1e-12


@register
@dataclass(frozen=True, kw_only=True)
class Klass(Strategy):
    """Commit where confidence > tau and the last KL divergences are all < kappa."""

    name: ClassVar[str] = "klass"
    paper: ClassVar[str] = "KLASS, arXiv:2511.05664"
    sweep: ClassVar[Sweep] = Sweep(SURE, "tau", (0.9, 0.75, 0.6, 0.3))
    signals: ClassVar[frozenset[str]] = frozenset({"distribution"})
    scope: ClassVar[str] = "ahead"
    presets: ClassVar[dict[str, dict[str, float]]] = {
        "gsm8k": {"tau": 0.6, "kappa": 0.015},
        "math": {"tau": 0.6, "kappa": 0.01},
        "humaneval": {"tau": 0.9, "kappa": 0.01},
        "mbpp": {"tau": 0.7, "kappa": 0.01},
        "dream": {"tau": 0.9, "kappa": 0.001},
        "dream_math": {"tau": 0.9, "kappa": 0.005},
        "dream_humaneval": {"tau": 0.8, "kappa": 0.001},
    }
    tau: float = option(0.6, "commit only where confidence is above this", low=0.0, high=2.0)
    kappa: float = option(0.015, "... and every recent KL divergence is below this", low=0.0, high=10.0)
    history: int = option(2, "H: how many recent KL divergences", low=1)
    pick: str = option("all", "which ready positions to commit", choices=("all", "confident", "steady"))
    fallback: int = option(1, "commit this many if none is ready", low=1)

    def begin(self, view: StepView) -> Carry:
        """Before the first step.

        ln(q + 1e-12) of the last distribution q (B, W, V), how many KLs in a row were below kappa (B, W); the block
        that was last decoded and the steps it has had, (B,) both.
        """
        assert view.distribution is not None
        return {
            "last": torch.full_like(view.distribution, math.log(EPSILON)),
            "calm": torch.zeros_like(view.tokens),
            "block": torch.full_like(view.step, -1),
            "age": torch.zeros_like(view.step),
        }

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        assert view.distribution is not None
        now = view.distribution.softmax(dim=2)
        log = (now + EPSILON).log_()
        moved = (log - carry["last"]).mul_(now).sum(dim=2)
        calm = (carry["calm"] + 1) * (moved < self.kappa)
        open_ = in_first_block(view.masked, view.block)
        block = torch.div(view.masked.int().argmax(dim=1), view.block, rounding_mode="floor")
        age = torch.where(block == carry["block"], carry["age"] + 1, 0)
        old = (age >= self.history - 1)[:, None]
        ready = open_ & old & (calm >= self.history) & (view.confidence > self.tau)
        chosen = ready
        if self.pick != "all":
            chosen = best_of(view.sureness if self.pick == "confident" else -on_grid(moved), ready)
        fallback = top_of(view.sureness, open_, torch.full_like(view.step, self.fallback))
        chosen = torch.where(ready.any(dim=1, keepdim=True), chosen, fallback)
        decision = Decision(commits(chosen), torch.full_like(view.confidence, self.tau))
        return decision, {"last": log, "calm": calm, "block": block, "age": age}

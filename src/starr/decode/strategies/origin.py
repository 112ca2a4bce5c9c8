"""Masks are committed at random: Dream's ``origin``, the sampler that masked diffusion comes from (arXiv:2508.15487).

Time runs from 1 to eps in T equal parts; in the step from t to s each masked position is committed with probability
1 - s / t, in the last step all are. An event of probability p happens where noise < p. Where it happens nowhere, the
position with the least noise is committed: Dream's code then spends a forward on nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from starr.decode.ranking import with_best
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.schedule import dream_chance, steps_per_window
from starr.decode.strategies.sweep import FIXED, TOKENS_PER_STEP, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class Origin(Strategy):
    """Commit each mask at random, with a probability from Dream's time schedule."""

    name: ClassVar[str] = "origin"
    paper: ClassVar[str] = "Dream, arXiv:2508.15487"
    sweep: ClassVar[Sweep] = Sweep(FIXED, "steps", TOKENS_PER_STEP)
    signals: ClassVar[frozenset[str]] = frozenset({"noise"})
    steps: int | None = option(None, "steps over all windows; none takes as many as the window has positions", low=1)
    eps: float = option(0.001, "where time ends", low=0.0, high=0.5)

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        assert view.noise is not None
        chance = dream_chance(steps_per_window(view, self.steps), view.step, self.eps)
        drawn = view.masked & (view.noise < chance[:, None])
        return Decision(commits(with_best(drawn, -view.noise, view.masked)), order=-view.noise), carry

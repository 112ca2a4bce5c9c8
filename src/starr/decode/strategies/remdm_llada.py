"""ReMDM made deterministic, as used as a baseline for LLaDA (PC-Sampler's evaluation, arXiv:2508.13021).

Commit the most confident position, one a step, until ``share`` of the window's masks are decoded. Then ``loops`` times:
one step revokes the held token with the lowest probability of its own, the next commits the most confident position.
Then one a step until the window is full. Ties go to the lower position. The number of steps is known beforehand: one
for each mask and two for each loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from starr.decode.ranking import best_of
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import REVOKE, Sweep
from starr.decode.view import Carry, Decision, StepView, actions
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class ReMDMForLLaDA(Strategy):
    """Commit most of the canvas, then revoke the least likely token and commit the most confident one in turn."""

    name: ClassVar[str] = "remdm_llada"
    paper: ClassVar[str] = "ReMDM, arXiv:2503.00307, deterministic"
    sweep: ClassVar[Sweep] = Sweep(REVOKE, "loops", (4, 8, 16, 32))
    share: float = option(0.875, "share of the masks that is decoded first", low=0.0, high=0.999)
    loops: int = option(32, "how often a token is revoked", low=0, high=1024)

    def revokes(self) -> bool:
        return True

    def ends_within(self, masks: int, length: int, windows: int) -> int:
        return masks + 2 * self.loops * windows

    def begin(self, view: StepView) -> Carry:
        return {"masks": view.masked.sum(dim=1)}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        first = (self.share * carry["masks"].double()).long()
        turn = view.step - first
        back = (turn >= 0) & (turn < 2 * self.loops) & (turn % 2 == 0) & view.held.any(dim=1)
        commit = best_of(view.sureness, view.masked) & ~back[:, None]
        revoke = best_of(-view.confidence, view.held) & back[:, None]
        return Decision(actions(commit, revoke), doubt=-view.confidence), carry

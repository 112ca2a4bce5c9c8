"""Commit the longest sorted prefix whose joint mode is certain (Fast-dLLM++'s Fréchet profile, arXiv:2606.02955).

With confidences sorted, c_(1) >= c_(2) >= ..., the probability that the first n proposals are right together is at
least L_n = sum_{j <= n} c_(j) - (n - 1), and any other tuple has at most U_n = 1 - c_(n). The rule commits the first n
for the largest n with G_n = L_n - U_n > delta (strict), and always the first; ties go to the lower position.

With e_j = 1 - c_(j) this is sum_{j <= n} e_j + e_n < 1 - delta. The left side grows with n, so each rank can be judged
by itself. Errors are summed as integers of 2^-24, the spacing of float32 below 1: the sums are exact on every device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from starr.decode.ranking import rank_of
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import SURE, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option
from starr.plugins import register

UNIT = 1 << 24


def sum_before(error: Tensor, rank: Tensor) -> Tensor:
    """(B, W) int64: the sum of the errors (B, W) int64 of all lower ranks (B, W)."""
    order = rank.argsort(dim=1, stable=True)
    ordered = error.gather(1, order)
    before = ordered.cumsum(dim=1) - ordered
    return before.gather(1, order.argsort(dim=1))


@register
@dataclass(frozen=True, kw_only=True)
class Profile(Strategy):
    """Commit the first n by confidence for the largest n with G_n > delta, and always one."""

    name: ClassVar[str] = "profile"
    paper: ClassVar[str] = "Fast-dLLM++, arXiv:2606.02955"
    sweep: ClassVar[Sweep] = Sweep(SURE, "delta", (0.5, 0.25, 0.1, 0.0))
    delta: float = option(0.25, "delta: smaller commits more per step", low=0.0, high=1.0)

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        rank = rank_of(view.sureness, view.masked)
        error = ((1.0 - view.confidence) * UNIT).round().long()
        before = sum_before(error, rank)
        chosen = view.masked & ((rank == 0) | (before + 2 * error < round((1.0 - self.delta) * UNIT)))
        threshold = 1.0 - (1.0 - self.delta - before / UNIT) / 2
        return Decision(commits(chosen), threshold), carry

"""The least uncertain positions first, on Dream's own schedule (arXiv:2508.15487); see ``schedule``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from starr.decode.strategies.schedule import Scheduled
from starr.decode.strategies.sweep import FIXED, TOKENS_PER_STEP, Sweep
from starr.decode.view import StepView
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class Entropy(Scheduled):
    """Commit where entropy is lowest, as many as Dream's time schedule gives and at least one."""

    name: ClassVar[str] = "entropy"
    paper: ClassVar[str] = "Dream, arXiv:2508.15487"
    sweep: ClassVar[Sweep] = Sweep(FIXED, "steps", TOKENS_PER_STEP)
    signals: ClassVar[frozenset[str]] = frozenset({"entropy"})
    schedule: str = option("dream", "whose schedule: dream by time, llada evenly", choices=("dream", "llada"))

    def score(self, view: StepView) -> Tensor:
        assert view.entropy is not None
        return -view.entropy

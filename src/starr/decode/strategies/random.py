"""Positions in random order, a fixed number per step: LLaDA's ``random`` remasking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from starr.decode.strategies.schedule import Scheduled
from starr.decode.strategies.sweep import FIXED, TOKENS_PER_STEP, Sweep
from starr.decode.view import StepView
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class Random(Scheduled):
    """Commit positions drawn at random, one per step or as many as the schedule gives."""

    name: ClassVar[str] = "random"
    paper: ClassVar[str] = "LLaDA, arXiv:2502.09992"
    sweep: ClassVar[Sweep] = Sweep(FIXED, "steps", TOKENS_PER_STEP)
    signals: ClassVar[frozenset[str]] = frozenset({"noise"})

    def score(self, view: StepView) -> Tensor:
        assert view.noise is not None
        return view.noise

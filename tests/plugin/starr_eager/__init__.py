"""A package of somebody else: one strategy, one cache, one stop rule and one task."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

import starr


@dataclass(frozen=True, kw_only=True)
class Eager(starr.Strategy):
    """Commit the most confident masks, a fixed number a step."""

    name: ClassVar[str] = "eager"
    paper: ClassVar[str] = "none"
    count: int = starr.option(4, "masks a step", low=1)

    def decide(self, view: starr.StepView, carry: starr.Carry) -> tuple[starr.Decision, starr.Carry]:
        count = torch.full_like(view.step, self.count)
        return starr.Decision(starr.commits(starr.top_of(view.confidence, view.masked, count))), carry


@dataclass(frozen=True, kw_only=True)
class Lazy(starr.Cache):
    """Recompute every position in each step."""

    name: ClassVar[str] = "lazy"

    def query(self, canvas) -> torch.Tensor:
        return torch.ones_like(canvas.tokens, dtype=torch.bool)


@dataclass(frozen=True, kw_only=True)
class Brief(starr.StopRule):
    """End a row after so many steps, and drop its masks."""

    name: ClassVar[str] = "brief"
    steps: int = 2

    def judge(self, view: starr.StepView, moment: starr.Moment) -> starr.Verdict:
        end = moment.total >= self.steps - 1
        return starr.Verdict(end, torch.zeros_like(view.masked), drop=end)


def echo(name: str, data: Path | None) -> starr.Task:
    """Two questions that every answer answers."""
    items = [starr.Item(str(n), f"say {n}", f"say {n}", str(n), str(n)) for n in range(2)]
    return starr.Task(name, items, lambda item, text: starr.Grade(text, {"said": True}), "said", 8)

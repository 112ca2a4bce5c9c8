"""A commit rule fitted on the model itself (``starr calibrate``).

P is the probability that a proposal stands in the text that a careful run writes from this very state. It is 1 where
the careful run commits at once (confidence >= 0.95). The risk of a commit is the expected number of wrong ones, 1 - P,
where one that would not fit (a wrong digit, half of another wording) counts as several. Commit the least risky ones
while the sum of their risks is <= ``budget``. With ``floor`` instead, commit where P >= floor. Always commit the least
risky one. Ties go to the lower position.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Self

import torch
from torch import Tensor

from starr.decode.ranking import rank_of, with_best
from starr.decode.strategies.base import KnownModel, Strategy
from starr.decode.strategies.calibrated.features import features_of, no_past, proposals_near, remember
from starr.decode.strategies.calibrated.rule import FittedRule, find_rule
from starr.decode.strategies.fitted import bind_fitted
from starr.decode.strategies.sweep import SURE, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.errors import InputError
from starr.named import option
from starr.plugins import register

FOREIGN = "Fit it again with starr calibrate, or allow it: calibrated:foreign=true."


@register
@dataclass(frozen=True, kw_only=True)
class Calibrated(Strategy):
    """Commit where a rule fitted on the model says that the proposal will stand."""

    name: ClassVar[str] = "calibrated"
    paper: ClassVar[str] = "ours (starr calibrate)"
    sweep: ClassVar[Sweep] = Sweep(SURE, "budget", (0.1, 0.2, 0.3, 0.6))
    signals: ClassVar[frozenset[str]] = frozenset({"margin", "entropy"})
    files: ClassVar[frozenset[str]] = frozenset({"rule"})
    rule: str = option("auto", "file written by `starr calibrate`; auto is the one that ships for the model")
    budget: float | None = option(None, "expected wrong commits per step; none is the rule's own", low=0.0, high=1000.0)
    floor: float | None = option(None, "instead: commit where P is at least this", low=0.0, high=2.0)
    foreign: bool = option(False, "allow a rule that was fitted on another model")
    fitted: FittedRule | None = field(default=None, repr=False, compare=False)
    ends: tuple[int, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.floor is not None and self.budget is not None:
            raise InputError("calibrated: floor and budget cannot be used together.", param="budget")

    def bind(self, model: KnownModel) -> Self:
        """A copy with its rule and the model's end-of-text ids."""
        return bind_fitted(self, model, self.fitted or find_rule(self.rule, model), "rule", FOREIGN)

    def begin(self, view: StepView) -> Carry:
        return no_past(view)

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        if self.fitted is None:
            raise InputError("calibrated needs a model.", hint="Call bind(model) first.", param="strategy")
        stands, harms = self.fitted.chances(features_of(view, carry, self.ends), proposals_near(view))
        stands = torch.where(view.confidence >= self.fitted.careful, 1.0, stands)
        risk = self.fitted.risk(stands, harms)
        if self.floor is not None:
            chosen = view.masked & (stands >= self.floor)
        else:
            chosen = within_budget(risk, view.masked, self.fitted.budget if self.budget is None else self.budget)
        return Decision(commits(with_best(chosen, -risk, view.masked))), remember(view, carry)


def within_budget(risk: Tensor, masked: Tensor, budget: float) -> Tensor:
    """(B, W) bool: the least risky masks while the sum of their risks is <= budget."""
    rank = rank_of(-risk, masked)
    order = rank.clamp(max=risk.shape[1] - 1)
    risk = torch.where(masked, risk, 0.0).double()
    ranked = torch.zeros_like(risk).scatter_add(1, order, risk)
    return masked & (ranked.cumsum(dim=1).gather(1, order) <= budget)

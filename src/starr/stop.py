"""Stop rules: they may keep masks out of a strategy's hands for now, and they have the last word on when a row ends.

Like strategies they are frozen dataclasses with pure methods over the window, beside which they stand: any strategy
takes any rules. Letters: B rows, W window positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

import torch
from torch import Tensor

from starr.errors import InputError
from starr.strategy.base import StepView
from starr.strategy.registry import Entry, Registry, check, option

if TYPE_CHECKING:
    from starr.request import Request


@dataclass(frozen=True, slots=True)
class Moment:
    """Where in its row each step stands."""

    total: Tensor  # (B,) int64: steps taken before this one
    limit: Tensor  # (B,) int64: steps the row may take
    offset: Tensor  # (B,) int64: canvas position of the window's first
    ended: Tensor  # (B, W) bool: an end-of-text is held here
    ending: Tensor  # (B, W) bool: an end-of-text is proposed here

    @property
    def last(self) -> Tensor:
        """(B,) bool: the row may take no step after this one."""
        return self.total >= self.limit - 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where ``end``, this step commits ``commit`` and nothing else, and is the row's last.

    Masks that are left then are dropped from the text where ``drop``; elsewhere one more forward commits them all.
    """

    end: Tensor  # (B,) bool
    commit: Tensor  # (B, W) bool
    drop: Tensor  # (B,) bool


class StopRule:
    """A frozen dataclass of options and two pure methods; ``signals`` names the optional StepView fields it reads."""

    name: ClassVar[str]
    paper: ClassVar[str]
    signals: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        check(self)

    def check_request(self, request: Request) -> None:
        """Raise InputError where the rule cannot serve the request."""

    def hides(self, view: StepView, moment: Moment) -> Tensor | None:
        """(B, W) bool: masks that the strategy may not touch now; it sees them as template."""
        return None

    def judge(self, view: StepView, moment: Moment) -> Verdict | None:
        """Whether the row ends with this step; None is no."""
        return None


STOPS: Registry[StopRule] = Registry("stop rule")
R = TypeVar("R", bound=StopRule)


def register(cls: type[R]) -> type[R]:
    """Make a stop rule known under its ``name``."""
    STOPS.add(cls)
    return cls


@register
@dataclass(frozen=True, kw_only=True)
class EndOfText(StopRule):
    """Masks behind the first held end-of-text are never decoded; the row ends when all before it is held.

    If the end-of-text is revoked, they are open again. Rows end at an end-of-text without this rule too, but then a
    strategy spends commits behind it.
    """

    name: ClassVar[str] = "eos"
    paper: ClassVar[str] = "Elastic-Cache, arXiv:2510.14973"

    def check_request(self, request: Request) -> None:
        if not request.ends:
            raise InputError("Stop rule eos cannot be used: no end-of-text ends this canvas.", param="stop")

    def hides(self, view: StepView, moment: Moment) -> Tensor:
        return moment.ended.cumsum(dim=1) > 0


@register
@dataclass(frozen=True, kw_only=True)
class Prophet(StopRule):
    """Commit everything once the answer's two best tokens are far apart: their mean logit gap >= the bar of the time.

    The gap is averaged over masks among the ``length`` canvas positions from ``start``, or over all masks of the window
    if ``start`` is none. The bar falls with (step + 1) / limit at 0.33 and 0.67, the limit being max_forwards or else
    the number of masks. The gap ln(p1 / p2) is read off best and margin, whose grid of 2^-16 makes it exact to 0.03 at
    7.5. Answer positions outside the window are not seen: a block decides on the part that lies in it.
    """

    name: ClassVar[str] = "prophet"
    paper: ClassVar[str] = "Prophet, arXiv:2508.19982"
    signals: ClassVar[frozenset[str]] = frozenset({"margin"})
    start: int | None = option(None, "first answer position on the canvas", low=0)
    length: int = option(5, "answer positions", low=1)
    early: float = option(7.5, "bar in the first third", low=0.0)
    middle: float = option(5.0, "bar in the second third", low=0.0)
    late: float = option(2.5, "bar after that", low=0.0)

    def judge(self, view: StepView, moment: Moment) -> Verdict:
        assert view.margin is not None
        position = moment.offset[:, None] + torch.arange(view.masked.shape[1], device=view.masked.device)
        answer = view.masked
        if self.start is not None:
            answer = answer & (position >= self.start) & (position < self.start + self.length)
        gap = (view.best / (view.best - view.margin).clamp(min=2.0**-17)).log()
        count = answer.sum(dim=1)
        mean = gap.masked_fill(~answer, 0.0).sum(dim=1) / count.clamp(min=1)
        end = (count > 0) & (mean >= self.bar(moment))
        return Verdict(end, view.masked, torch.zeros_like(end))

    def bar(self, moment: Moment) -> Tensor:
        """(B,) float: what the mean gap is compared with at this time."""
        progress = (moment.total + 1) / moment.limit
        late = torch.where(progress < 0.67, self.middle, self.late)
        return torch.where(progress < 0.33, self.early, late)


Ruled = tuple[StopRule, Tensor]
"""A rule and the rows (B,) bool that it is for."""


def scoped(rules: Sequence[Ruled], view: StepView, moment: Moment) -> StepView:
    """What strategies see: hidden masks look like template."""
    for rule, rows in rules:
        hidden = rule.hides(view, moment)
        if hidden is not None:
            hidden = hidden & rows[:, None] & view.masked
            view = replace(view, masked=view.masked & ~hidden, frozen=view.frozen | hidden)
    return view


def judged(rules: Sequence[Ruled], view: StepView, moment: Moment) -> Verdict:
    """The first rule to end a row has its way."""
    end, drop = torch.zeros_like(moment.last), torch.zeros_like(moment.last)
    commit = torch.zeros_like(view.masked)
    for rule, rows in rules:
        verdict = rule.judge(view, moment)
        if verdict is not None:
            new = verdict.end & rows & ~end
            commit = torch.where(new[:, None], verdict.commit & view.masked, commit)
            end, drop = end | new, drop | (new & verdict.drop)
    return Verdict(end, commit, drop)


def stop_rules(given: str | StopRule | Sequence[str | StopRule]) -> tuple[StopRule, ...]:
    """Rules from their text forms: one, several joined by +, or a list; "" and "none" are no rule."""
    if isinstance(given, str):
        given = [] if given.strip() in ("", "none") else given.split("+")
    many = [given] if isinstance(given, StopRule) else given
    return tuple(STOPS.parse(rule) for rule in many)


def stops() -> list[Entry[StopRule]]:
    """What stop rules there are, by name, with paper, options and defaults."""
    return [STOPS.entries[name] for name in sorted(STOPS.entries)]

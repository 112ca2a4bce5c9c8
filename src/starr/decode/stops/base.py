"""Stop rules: they may hide masks from a strategy for a step, and they decide when a row ends.

Like strategies they are frozen dataclasses with pure methods over the window; any strategy
works with any rules. Letters: B rows, W window positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from starr.decode.view import StepView
from starr.named import Registry, check

if TYPE_CHECKING:
    from starr.decode.canvas import Canvas
    from starr.decode.request import Request


@dataclass(frozen=True, slots=True)
class Whole:
    """The canvas beyond the window, for rules that ``watch`` it. Letter: C columns, the prompt's included."""

    planned: Tensor  # (B,) int64: steps that the row would take one by one: max_forwards, or its masks
    position: Tensor  # (B, C) int64: place on the canvas, negative in the prompt
    open: Tensor  # (B, C) bool: neither prompt nor template nor padding
    masked: Tensor  # (B, C) bool
    gap: Tensor  # (B, C) float32: best minus second logit, last seen, with the signal of that name


@dataclass(frozen=True, slots=True)
class Moment:
    """The progress of each row at this step."""

    total: Tensor  # (B,) int64: steps taken before this one
    limit: Tensor  # (B,) int64: steps the row may take
    offset: Tensor  # (B,) int64: canvas position of the window's first
    ended: Tensor  # (B, W) bool: an end-of-text is held here
    ending: Tensor  # (B, W) bool: an end-of-text is proposed here
    fresh: Tensor  # (B,) bool: the step's forward computed every position, and left no K/V as they were
    whole: Whole | None = None

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

    def over(self, action: Tensor) -> Tensor:
        """Actions (B, W) with those of ended rows replaced."""
        return torch.where(self.end[:, None], self.commit.to(action.dtype), action)


class StopRule:
    """A frozen dataclass of options and two pure methods; ``signals`` names the optional StepView fields it reads."""

    name: ClassVar[str]
    paper: ClassVar[str]
    signals: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        check(self)

    def check_request(self, request: Request) -> None:
        """Raise InputError where the rule cannot serve the request."""

    def watches(self, request: Request) -> range:
        """Columns (prompt included) to be observed in every step, wherever the window is."""
        return range(0)

    def ends_now(self) -> bool:
        """Whether its verdict ends a row without one more forward."""
        return False

    def drops(self) -> bool:
        """Whether its verdict may leave masks out of the text."""
        return False

    def looks_again(self) -> bool:
        """Whether it ends a row early only by a ``fresh`` forward; then ``nears`` says when one is due."""
        return False

    def nears(self, canvas: Canvas, eos_ids: Tensor) -> Tensor:
        """(B,) bool: rows that it would end by what was last seen; their next forward computes every position."""
        raise NotImplementedError

    def hides(self, view: StepView, moment: Moment) -> Tensor | None:
        """(B, W) bool: masks that the strategy may not touch now; it sees them as template."""
        return None

    def judge(self, view: StepView, moment: Moment) -> Verdict | None:
        """Whether the row ends with this step; None is no."""
        return None


STOPS: Registry[StopRule] = Registry("stop rule", StopRule, "starr.stops")

Ruled = tuple[StopRule, Tensor]
"""A rule and the rows (B,) bool that it is for."""


def consult(
    rules: Sequence[Ruled], view: StepView, canvas: Canvas, eos_ids: Tensor, query: Tensor
) -> tuple[StepView, Verdict | None]:
    """Return the view without hidden masks, and the verdict of the rules on each row; None without rules.

    ``query`` (B, C) bool are the positions that the forward computed.
    """
    if not rules:
        return view, None
    ended, ending = torch.isin(view.tokens, eos_ids) & view.held, torch.isin(view.proposal, eos_ids)
    whole = Whole(
        planned=canvas.notes.get("planned", canvas.limit),
        position=canvas.column_index - canvas.rules.start[:, None],
        open=canvas.valid & ~canvas.frozen,
        masked=canvas.masked,
        gap=canvas.last.gap,
    )
    fresh, offset = (query | ~canvas.valid).all(dim=1), canvas.window.start - canvas.rules.start
    moment = Moment(canvas.total, canvas.limit, offset, ended, ending, fresh, whole)
    return hide_masks(rules, view, moment), combine_verdicts(rules, view, moment)


def hide_masks(rules: Sequence[Ruled], view: StepView, moment: Moment) -> StepView:
    """Hide masks from strategies: a hidden mask looks like template."""
    for rule, rows in rules:
        hidden = rule.hides(view, moment)
        if hidden is not None:
            hidden = hidden & rows[:, None] & view.masked
            view = replace(view, masked=view.masked & ~hidden, frozen=view.frozen | hidden)
    return view


def combine_verdicts(rules: Sequence[Ruled], view: StepView, moment: Moment) -> Verdict:
    """The first matching rule wins."""
    end, drop = torch.zeros_like(moment.last), torch.zeros_like(moment.last)
    commit = torch.zeros_like(view.masked)
    for rule, rows in rules:
        verdict = rule.judge(view, moment)
        if verdict is not None:
            new = verdict.end & rows & ~end
            commit = torch.where(new[:, None], verdict.commit & view.masked, commit)
            end, drop = end | new, drop | (new & verdict.drop)
    return Verdict(end, commit, drop)

"""Rows of different strategies decide side by side; their memories follow them."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from starr.decode.decide import decide, fit, regroup
from starr.decode.strategies.base import Strategy
from starr.decode.view import Decision, StepView, commits

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Counting(Strategy):
    """Commits nothing; counts the steps of its window and of its row."""

    name: ClassVar[str] = "counting"
    keeps: ClassVar[frozenset[str]] = frozenset({"row"})
    mark: int = 0

    def __post_init__(self) -> None: ...

    def begin(self, view):
        return {"row": torch.zeros_like(view.step), "window": torch.zeros_like(view.tokens)}

    def decide(self, view, carry):
        carry = {name: value + 1 for name, value in carry.items()}
        extras = {"mark": torch.full_like(view.step, self.mark)}
        return Decision(commits(view.masked & False), label=carry["window"].to(torch.int8), extras=extras), carry


def view_of(rows: int, width: int, step: int) -> StepView:
    number, blank = torch.zeros(rows, width, dtype=torch.int64), torch.zeros(rows, width)
    each = torch.full((rows,), 1)
    flags = torch.ones(rows, width).bool()
    return StepView(number, flags, ~flags, number, blank, blank, each * step, each * width, each, each)


def test_memories_begin_anew_with_a_window_but_for_what_is_kept():
    groups = regroup([], [10], [Counting()], CPU)
    never = torch.tensor([False])
    _, groups = decide(groups, view_of(1, 2, 0), ~never, True)
    _, groups = decide(groups, view_of(1, 2, 1), never, False)
    _, groups = decide(groups, view_of(1, 3, 0), never, True)
    assert groups[0].carry["row"].tolist() == [3]
    assert groups[0].carry["window"].tolist() == [[1, 1, 1]]


def test_rows_keep_their_memory_when_others_leave_and_join():
    groups = regroup([], [1, 2], [Counting(), Counting()], CPU)
    _, groups = decide(groups, view_of(2, 2, 0), torch.tensor([True, True]), True)
    groups = regroup(groups, [2, 3], [Counting(), Counting()], CPU)
    assert groups[0].carry["row"].tolist() == [1, 0]


def test_two_strategies_say_each_its_part():
    groups = regroup([], [1, 2, 3], [Counting(mark=7), Counting(), Counting(mark=7)], CPU)
    assert [group.rows.tolist() for group in groups] == [[0, 2], [1]]
    decision, _ = decide(groups, view_of(3, 2, 0), torch.ones(3).bool(), True)
    assert decision.extras["mark"].tolist() == [7, 0, 7]
    assert decision.threshold is None, "nobody set it"
    assert decision.label.tolist() == [[1, 1]] * 3


def test_deciding_changes_no_group():
    groups = regroup([], [1], [Counting()], CPU)
    decide(groups, view_of(1, 2, 0), torch.tensor([True]), True)
    assert groups[0].carry is None


def test_a_window_memory_fits_another_width():
    assert fit(torch.ones(1, 2, 3), 4).tolist() == [[[1] * 3] * 2 + [[0] * 3] * 2]
    assert fit(torch.ones(1, 4), 2).shape == (1, 2)
    assert fit(torch.ones(5), 2).shape == (5,)

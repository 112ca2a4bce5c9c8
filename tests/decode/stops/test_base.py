"""Several rules beside one strategy: each for its rows, the first to end a row has its way."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from starr.decode.stops.base import StopRule, Verdict, consult
from tests.decode.rows import EOS_IDS, canvas_of, request
from tests.decode.test_view import view

YES = torch.tensor([True])

CANVAS = canvas_of(request("_a_"))


@dataclass(frozen=True)
class Ends(StopRule):
    """Ends the row at once."""

    name: ClassVar[str] = "ends"
    drop: bool = False

    def __post_init__(self) -> None: ...

    def judge(self, view, moment):
        return Verdict(YES, view.masked, torch.tensor([self.drop]))


@dataclass(frozen=True)
class Hides(StopRule):
    """Hides every mask."""

    name: ClassVar[str] = "hides"

    def __post_init__(self) -> None: ...

    def hides(self, view, moment):
        return torch.ones_like(view.masked)


def test_without_rules_the_view_passes():
    seen = view()
    assert consult([], seen, CANVAS, EOS_IDS, CANVAS.valid) == (seen, None)


def test_hidden_masks_look_like_template_but_may_be_committed_by_a_verdict():
    narrow, verdict = consult([(Hides(), YES), (Ends(), YES)], view(), CANVAS, EOS_IDS, CANVAS.valid)
    assert not narrow.masked.any()
    assert narrow.frozen[0, 0]
    assert verdict.commit.tolist() == view().masked.tolist()
    assert verdict.over(torch.zeros(1, 4, dtype=torch.int8)).tolist() == [[1, 0, 0, 0]]


def test_the_first_rule_to_end_a_row_has_its_way_and_only_in_its_rows():
    _, verdict = consult([(Ends(), YES), (Ends(drop=True), YES)], view(), CANVAS, EOS_IDS, CANVAS.valid)
    assert (bool(verdict.end), bool(verdict.drop)) == (True, False)
    _, verdict = consult([(Ends(), ~YES)], view(), CANVAS, EOS_IDS, CANVAS.valid)
    assert not verdict.end


@dataclass(frozen=True)
class EndsFresh(Ends):
    """Ends only what was computed whole."""

    def judge(self, view, moment):
        return Verdict(moment.fresh, view.masked, ~YES)


def test_a_forward_is_fresh_if_it_computed_every_position_of_the_row():
    partly = CANVAS.valid.clone()
    partly[0, 1] = False
    ends = [consult([(EndsFresh(), YES)], view(), CANVAS, EOS_IDS, query)[1].end for query in (CANVAS.valid, partly)]
    assert [bool(end) for end in ends] == [True, False]

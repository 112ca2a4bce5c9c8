"""Dilated levels by hand."""

import torch

import starr
from starr.decode.ranking import best_of
from starr.decode.strategies.dus import dilated_levels
from tests.decode.strategies.views import chosen, one_row


def test_levels_are_dilated_and_cover_the_window():
    levels = dilated_levels(torch.tensor([8, 5]), 9, 2)
    assert levels[0].tolist() == [0, 2, 1, 2, 0, 2, 1, 2, -1]
    assert (levels[1, :5] >= 0).all()
    assert (levels[1, 5:] == -1).all()


def test_the_first_step_commits_the_first_level():
    assert chosen(starr.strategy("dus"), one_row([0.9] * 8)) == [0, 4]


def test_a_forced_commit_stays_in_the_level():
    """All of the first level is skipped: of what is due, 4 is the surest; 7 is surer, but not due."""
    view = one_row([0.1, 0.5, 0.5, 0.5, 0.2, 0.5, 0.5, 0.6])
    strategy = starr.strategy("dus")
    decision, _ = strategy.decide(view, strategy.begin(view))
    assert not decision.action.any()
    assert best_of(decision.order, view.masked)[0].nonzero()[:, 0].tolist() == [4]

"""The contract: the states of a view's positions, and actions from choices."""

from dataclasses import replace

import torch

from starr.decode.canvas import window_index
from starr.decode.propose import Proposals
from starr.decode.view import Action, StepView, actions, build_view, commits, remember, window_logits
from tests.decode.rows import call_of, canvas_of, hold, put, request


def view() -> StepView:
    masked = torch.tensor([[True, False, False, False]])
    frozen = torch.tensor([[False, True, False, True]])
    blank, number = torch.zeros(1, 4), torch.zeros(1, 4, dtype=torch.int64)
    one = torch.tensor([1])
    return StepView(number, masked, frozen, number, blank, blank, one, torch.tensor([3]), one, one)


def test_what_is_neither_masked_nor_frozen_is_held():
    assert view().held.tolist() == [[False, False, True, False]]
    assert view().inside.tolist() == [[True, True, True, False]]


def test_actions_are_the_trace_alphabet():
    flags = [torch.tensor([[i == j for j in range(4)]]) for i in range(4)]
    found = actions(flags[1], flags[2], flags[3])
    assert found.tolist() == [[Action.KEEP, Action.COMMIT, Action.REVOKE, Action.REVISE]] == [[0, 1, 2, 3]]
    assert found.dtype == torch.int8
    assert commits(flags[1]).tolist() == [[0, 1, 0, 0]]


def proposals(count: int, **more) -> Proposals:
    number = torch.arange(count)
    score = (number + 1) / 16
    return Proposals(number + 20, score, score + 0.25, score / 2, **more)


def remembered(canvas, row, found=None, **more):
    call = call_of(canvas, row)
    found = found or proposals(call.observed.index.numel(), **more)
    return remember(call, found), call.observed, found


def test_masks_get_the_proposals_confidence_and_held_tokens_their_own():
    row = request("__", strategy="starr")
    canvas, _, _ = remembered(hold(canvas_of(row), 0, 2), row)
    assert canvas.last.proposal[0, 1:3].tolist() == [20, 21]
    assert canvas.last.confidence[0, 1:3].tolist() == [1 / 16, 1 / 16], "2/16 halved: of the held token"
    assert canvas.last.seen[0, 1:3].all()
    assert canvas.buffered[0].tolist() == [True, True, True, False]


def test_what_was_not_observed_keeps_its_last_proposal():
    row = request("__")
    canvas = canvas_of(row)
    canvas = put(hold(canvas, 0, 2), confidence=torch.full_like(canvas.last.confidence, 0.5))
    canvas, _, _ = remembered(canvas, row)
    assert canvas.last.confidence[0].tolist() == [0.5, 1 / 16, 0.5, 0.5]


def test_the_view_shows_the_window_and_only_the_signals_asked_for():
    row = request("____", block_length=2)
    canvas, _, _ = remembered(canvas_of(row), row, entropy=torch.tensor([1.0, 2.0]))
    canvas = canvas.noted({"shadow": torch.full((1, 6), 0.75), "secret": torch.ones(1, 6)})
    call = call_of(canvas, row)
    call = replace(call, settings=replace(call.settings, signals=frozenset({"entropy", "shadow"})))
    view = build_view(call, canvas, proposals(2))
    assert view.entropy.tolist() == [[1.0, 2.0]]
    assert view.margin is None
    assert view.noise is None
    assert view.extras["shadow"].tolist() == [[0.75, 0.75]]
    assert set(view.extras) == {"shadow"}
    assert (view.width.tolist(), view.windows.tolist(), view.block.tolist()) == ([2], [2], [2])


def test_logits_stand_at_their_window_positions():
    row = request("_a_")
    canvas, where, found = remembered(canvas_of(row), row, logits=torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    logits = window_logits(canvas, window_index(canvas, 3), where, found)
    assert logits.tolist() == [[[1, 2], [0, 0], [3, 4]]]
    assert window_logits(canvas, window_index(canvas, 3), where, proposals(2)) is None

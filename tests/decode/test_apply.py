"""Actions carried out: tokens, states and counts."""

import torch

from starr.decode.apply import write_actions
from starr.decode.view import Action
from tests.decode.rows import canvas_of, hold, request
from tests.tiny import MASK


def test_each_action_does_what_its_name_says():
    canvas = hold(hold(canvas_of(request("____")), 0, 3, token=20), 0, 4, token=30)
    window = torch.tensor([[1, 2, 3, 4]])
    action = torch.tensor([[Action.COMMIT, Action.KEEP, Action.REVOKE, Action.REVISE]])
    after = write_actions(canvas, window, action, torch.tensor([[11, 12, 13, 14]]), MASK)
    assert after.tokens[0, 1:5].tolist() == [11, MASK, MASK, 14]
    assert after.masked[0, 1:5].tolist() == [False, True, True, False]
    assert after.changed[0, 1:5].tolist() == [True, False, True, True]
    assert [int(n) for n in (after.done.commits, after.done.revocations, after.done.revisions)] == [1, 1, 1]
    assert (int(after.window.step), int(after.total)) == (int(canvas.window.step) + 1, int(canvas.total) + 1)


def test_a_commit_keeps_its_step_and_confidence():
    canvas = canvas_of(request("__"))
    canvas.last.confidence[0, 2] = 0.75
    window, words = torch.tensor([[1, 2]]), torch.tensor([[8, 9]])
    after = write_actions(canvas, window, torch.tensor([[0, 1]]), words, MASK)
    after = write_actions(after, window, torch.tensor([[0, 0]]), words, MASK)
    assert int(after.done.committed_at[0, 2]) == 0
    assert float(after.done.committed_with[0, 2]) == 0.75

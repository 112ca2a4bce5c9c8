"""The contract: the states of a view's positions, and actions from choices."""

import torch

from starr.decode.view import Action, StepView, actions, commits


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

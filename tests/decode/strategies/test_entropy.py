"""Dream's schedule and its order, by hand."""

import torch

import starr
from starr.decode.strategies.schedule import dream_share
from tests.decode.strategies.views import chosen, one_row


def test_the_least_uncertain_come_first():
    view = one_row([0.9, 0.1, 0.5, 0.5], step=0, entropy=[2.0, 0.1, 0.5, 1.0])
    assert chosen(starr.strategy("entropy:steps=2"), view) == [1], "floor(4 x 0.999 / 2)"


def test_shares_end_with_everything_that_is_left():
    masks, left = 10, []
    for step in range(4):
        count = int(dream_share(torch.tensor([masks]), torch.tensor([4]), torch.tensor([step]), 0.001))
        left.append(count)
        masks -= count
    assert masks == 0
    assert left == [2, 2, 2, 4]

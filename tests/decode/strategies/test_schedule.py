"""LLaDA's even schedule: the shares of all steps sum to the masks."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from starr.decode.strategies.schedule import share_of_step, steps_per_window
from tests.decode.strategies.views import one_row


@given(st.integers(0, 60), st.integers(1, 20))
def test_shares_sum_to_the_masks_and_fall_by_at_most_one(masks, steps):
    shares = [int(share_of_step(torch.tensor([masks]), torch.tensor([steps]), torch.tensor([s]))) for s in range(steps)]
    assert sum(shares) == masks
    assert shares == sorted(shares, reverse=True)
    assert max(shares) - min(shares) <= 1


def test_windows_share_the_steps_evenly_and_get_at_least_one():
    assert steps_per_window(one_row([0.5], windows=3), 10).tolist() == [3]
    assert steps_per_window(one_row([0.5], windows=30), 10).tolist() == [1]

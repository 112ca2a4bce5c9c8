"""The first block that has masks."""

import torch

from starr.decode.strategies.blocks import in_first_block


def test_only_masks_of_the_first_block_that_has_some():
    masked = torch.tensor([[0, 0, 0, 0, 1, 0, 1, 1], [0, 1, 1, 1, 0, 0, 0, 1], [0] * 8]).bool()
    found = in_first_block(masked, torch.tensor([3, 8, 4]))
    assert [row.nonzero().flatten().tolist() for row in found] == [[4], [1, 2, 3, 7], []]

"""The K/V buffer follows its rows."""

import torch

from starr.decode.buffer import laid_out
from tests.tiny import tiny_model

NET = tiny_model().net


def test_rows_that_stay_keep_their_keys_and_new_ones_start_empty():
    first = laid_out(NET, None, [], [4, 7], 5)
    first.keys.copy_(torch.randn(first.keys.shape))
    first.values.copy_(torch.randn(first.values.shape))
    wider = laid_out(NET, first, [4, 7], [7, 9], 8)
    assert torch.equal(wider.keys[:, 0, :, :5], first.keys[:, 1])
    assert torch.equal(wider.values[:, 0, :, :5], first.values[:, 1])
    assert not wider.keys[:, 0, :, 5:].any()
    assert not wider.keys[:, 1].any()
    assert wider.slots == 8
    narrower = laid_out(NET, wider, [7, 9], [7], 3)
    assert torch.equal(narrower.keys[:, 0], wider.keys[:, 0, :, :3])


def test_without_rows_there_is_no_buffer():
    assert laid_out(NET, None, [], [], 5) is None

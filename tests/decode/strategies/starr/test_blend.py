"""The blend (Eq. 4) and its share by how much is decoded."""

import torch

from starr.decode.strategies.starr.blend import blended, read_shares, share_now


def test_shares_are_read_from_text():
    assert read_shares("0.6/0.5/0.4") == (0.6, 0.5, 0.4)
    assert read_shares("0.3") == (0.3, 0.3, 0.3)


def test_the_share_changes_at_a_fifth_and_at_four_fifths():
    shares = []
    for held in (0, 1, 3, 5, 8, 9, 10):
        flags = torch.tensor([[i < held for i in range(10)]])
        shares.append(round(float(share_now(~flags, flags, (0.1, 0.2, 0.3)).flatten()[0]), 3))
    assert shares[0] == shares[1] == 0.1
    assert shares[2] == shares[3] == 0.2
    assert shares[-1] == 0.3


def test_the_share_weighs_the_temporal_part():
    base, neighbour = torch.tensor([[0.25]]), torch.tensor([[0.75]])
    assert float(blended(torch.tensor([[0.25]]), base, neighbour)) == 0.25 * 0.25 + 0.75 * 0.75
    assert float(blended(torch.tensor([[1.0]]), base, neighbour)) == 0.25

"""The training forward gives every noised block the states that a denoising step would compute."""

import torch

from starr.model.network.masks import block_mask
from tests.tiny import MASK, tiny_model
from training.blocks import noised_states, training_mask


def test_each_noised_block_sees_itself_and_the_clean_blocks_before_it():
    net = tiny_model(seed=1).net
    generator = torch.Generator().manual_seed(2)
    clean = torch.randint(3, 90, (2, 16), generator=generator)
    noised = clean.masked_fill(torch.rand(2, 16, generator=generator) < 0.6, MASK)
    with torch.inference_mode():
        together = noised_states(net, clean, noised, 4)
        for start in range(0, 16, 4):
            step = torch.cat([clean[:, :start], noised[:, start : start + 4]], dim=1)
            alone = net(step, attend=block_mask(start + 4, 4).expand(2, -1, -1))
            torch.testing.assert_close(together[:, start : start + 4], alone[:, start:], atol=1e-5, rtol=0)


def test_the_mask_counted_by_hand():
    mask = training_mask(5, 2)[0]
    clean, noised = mask[:5], mask[5:]
    assert clean[:, :5].sum(dim=1).tolist() == [2, 2, 4, 4, 5]
    assert not clean[:, 5:].any()
    assert noised[:, :5].sum(dim=1).tolist() == [0, 0, 2, 2, 4]
    assert noised[:, 5:].sum(dim=1).tolist() == [2, 2, 2, 2, 1]

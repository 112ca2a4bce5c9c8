"""The training forward gives every noised block the states that a denoising step would compute."""

import pytest
import torch

from starr.model.network.masks import block_mask
from tests.tiny import MASK, tiny_model
from training.blocks import mask_blocks, masked_states, noised_columns, training_mask
from training.noise import Batch


def batch_of(maskable, tokens=None):
    none, ones = torch.zeros_like(maskable), torch.ones(len(maskable), dtype=torch.long)
    return Batch(torch.ones_like(maskable, dtype=torch.long) if tokens is None else tokens, maskable, none, none, ones)


def from_column(start, length=24):
    return torch.arange(length)[None] >= torch.tensor(start)[:, None]


def test_each_mask_sees_its_own_block_and_the_clean_blocks_before_it():
    """Prompts of 3, 6 and 16 tokens: the first two share a block with the answer, whose tokens stay as they are."""
    net = tiny_model(seed=1).net
    generator = torch.Generator().manual_seed(2)
    clean, maskable = torch.randint(3, 90, (3, 24), generator=generator), from_column([3, 6, 16])
    noised, masked, _ = mask_blocks(batch_of(maskable, clean), MASK, 4, generator)
    assert torch.equal(noised[~maskable], clean[~maskable])
    with torch.inference_mode():
        together = masked_states(net, clean, noised, masked, 4)
        alone = []
        for row in range(3):
            for start in range(0, 24, 4):
                step = torch.cat([clean[row, :start], noised[row, start : start + 4]])[None]
                states = net(step, attend=block_mask(start + 4, 4))[0, start:]
                alone.append(states[masked[row, start : start + 4]])
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-5, rtol=0)


def test_every_block_draws_its_own_masks_from_one_to_all_of_them():
    maskable = from_column([6]).expand(4000, -1)
    noised, masked, _ = mask_blocks(batch_of(maskable), 9, 4, torch.Generator().manual_seed(0))
    assert not (masked & ~maskable).any()
    assert torch.equal(noised == 9, masked)
    counts = masked.view(4000, 6, 4).sum(2)
    assert not counts[:, 0].any()  # the prompt's own block
    assert torch.bincount(counts[:, 1]).tolist()[0] == 0
    assert torch.bincount(counts[:, 1])[1:] / 4000 == pytest.approx([1 / 2] * 2, abs=0.03)  # half of it is prompt
    for block in range(2, 6):
        assert torch.bincount(counts[:, block])[1:] / 4000 == pytest.approx([1 / 4] * 4, abs=0.03)
    assert torch.corrcoef(counts[:, 2:].T.float())[0, 1:].abs().max() < 0.06
    places = masked.view(4000, 6, 4)[:, 3][counts[:, 3] == 2].float().mean(0)
    assert places == pytest.approx([1 / 2] * 4, abs=0.06)


def test_weights_make_the_loss_a_mean_over_the_rows_tokens():
    """Each block counts as many tokens as it can mask, however many of them are masked."""
    maskable = from_column([6, 3, 21])
    _, masked, weight = mask_blocks(batch_of(maskable), 9, 4, torch.Generator().manual_seed(0))
    torch.testing.assert_close(weight.sum(1), torch.ones(3))
    assert torch.equal(weight > 0, masked)
    blocks = maskable.view(3, 6, 4).sum(2)
    torch.testing.assert_close(weight.view(3, 6, 4).sum(2), blocks / blocks.sum(1, keepdim=True))


def test_only_blocks_with_masks_are_computed_twice():
    masked = torch.zeros(3, 24, dtype=torch.bool)
    masked[0, [5, 13]] = True  # blocks 1 to 3
    masked[1, 16] = True  # block 4 and, to be as wide, what stands around it
    masked[2, 0] = True
    columns = noised_columns(masked, 4)
    assert columns.shape == (3, 12)
    assert columns[:, 0].tolist() == [4, 12, 0]
    assert torch.equal(masked.gather(1, columns).sum(1), masked.sum(1))


def test_the_mask_counted_by_hand():
    mask = training_mask(6, torch.tensor([[2, 3, 4, 5]]), 2)[0]
    clean, noised = mask[:6], mask[6:]
    assert clean[:, :6].sum(dim=1).tolist() == [2, 2, 4, 4, 6, 6]
    assert not clean[:, 6:].any()
    assert noised[:, :6].sum(dim=1).tolist() == [2, 2, 4, 4]
    assert noised[:, 6:].tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]

"""Training a block-causal model: clean and noised tokens go through one forward, side by side.

The row is written clean, then its noised blocks again. A noised block sees itself and the clean blocks before it, which
is what a denoising step sees; a clean block sees itself and the clean blocks before it, which is what prefill and seal
compute. Nobody sees another noised block, so every block of a row is trained at once, each with masks of its own.
Prompt tokens that share a block with the answer stand in its noised block as they are. Both parts have the positions
of the row. Letters: B rows, L tokens (a multiple of the block), K noised tokens, M masks.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from starr.model.network.masks import block_causal
from training.noise import Batch

BLOCK = 4  # positions, as in SDAR


def mask_blocks(batch: Batch, mask_id: int, block: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Noise for each block alone: n ~ U{1..m} of its m maskable tokens, the states that a block passes while decoded.

    Returns the noised tokens (B, L), which are masked (B, L) bool, and the weights (B, L) of their losses: m / n of a
    block, so that many masks count as much as few, over all maskable tokens of the row; they sum to one in a row.
    """
    rows, length = batch.tokens.shape
    free = batch.maskable.view(rows, length // block, block)
    most = free.sum(2, keepdim=True)
    count = 1 + (torch.rand(most.shape, generator=generator) * most).long()
    score = torch.rand(free.shape, generator=generator).masked_fill(~free, 2.0)
    masked = (score.argsort(2).argsort(2) < count) & free
    weight = masked * most / count / most.sum(1, keepdim=True)
    masked = masked.view(rows, length)
    return batch.tokens.masked_fill(masked, mask_id), masked, weight.view(rows, length)


def noised_columns(masked: Tensor, block: int) -> Tensor:
    """(B, K): the columns of each row's noised blocks, from the first to the last that has a mask (B, L) bool.

    K is that of the widest row; the others begin earlier or go on longer.
    """
    held = masked.view(len(masked), -1, block).any(2).long()
    first, last = held.argmax(1), held.shape[1] - held.flip(1).argmax(1)
    width = int((last - first).max())
    first = first.clamp(max=held.shape[1] - width)
    return block * first[:, None] + torch.arange(block * width, device=masked.device)


def training_mask(length: int, noised: Tensor, block: int) -> Tensor:
    """(B, L + K, L + K) bool: who sees whom among L clean tokens and those noised at columns (B, K)."""
    rows = len(noised)
    clean = torch.arange(length, device=noised.device).expand(rows, -1)
    nobody = torch.zeros(rows, length, noised.shape[1], dtype=torch.bool, device=noised.device)
    same = (noised // block)[:, :, None] == (noised // block)[:, None]
    earlier = ~block_causal(clean, noised, block).mT
    of_clean = torch.cat([block_causal(clean, clean, block), nobody], dim=2)
    return torch.cat([of_clean, torch.cat([earlier, same], dim=2)], dim=1)


def masked_states(net: nn.Module, clean: Tensor, noised: Tensor, masked: Tensor, block: int) -> Tensor:
    """(M, D): hidden states of the masks of the noised tokens (B, L), row by row, given the clean ones."""
    rows, length = clean.shape
    columns = noised_columns(masked, block)
    at = torch.cat([torch.arange(length, device=clean.device).expand(rows, -1), columns], dim=1)
    tokens = torch.cat([clean, noised.gather(1, columns)], dim=1)
    wanted = torch.arange(length, at.shape[1], device=clean.device).expand(rows, -1)
    states: Tensor = net(tokens, at, training_mask(length, columns, block), wanted=wanted)
    return states[masked.gather(1, columns)]

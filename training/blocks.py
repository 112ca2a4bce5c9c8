"""Training a block-causal model: clean and noised tokens go through one forward, side by side.

The row is written twice, clean first. A noised block sees itself and the clean blocks before it, which is what a
denoising step sees; a clean block sees itself and the clean blocks before it, which is what prefill and seal compute.
Nobody sees another noised block. Both halves have the same positions. Letters: B rows, L tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from starr.model.network.masks import block_mask

BLOCK = 4  # positions, as in SDAR


def training_mask(length: int, block: int, device: torch.device | None = None) -> Tensor:
    """(1, 2L, 2L) bool: who sees whom among L clean and L noised tokens, blocks cut at position 0."""
    clean = block_mask(length, block, device)[0]
    number = torch.arange(length, device=device) // block
    same = number[:, None] == number
    nobody = torch.zeros_like(clean)
    return torch.cat([torch.cat([clean, nobody], dim=1), torch.cat([clean & ~same, same], dim=1)])[None]


def noised_states(net: nn.Module, clean: Tensor, noised: Tensor, block: int) -> Tensor:
    """(B, L, D): hidden states of the noised tokens (B, L), given the clean ones."""
    rows, length = clean.shape
    at = torch.arange(length, device=clean.device).repeat(2)[None]
    seen = training_mask(length, block, clean.device).expand(rows, -1, -1)
    wanted = torch.arange(length, 2 * length, device=clean.device).expand(rows, -1)
    states: Tensor = net(torch.cat([clean, noised], dim=1), at, seen, wanted=wanted)
    return states

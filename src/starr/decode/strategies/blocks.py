"""Blocks for strategies whose window is the whole rest of the canvas: they see all of it and commit block by block."""

from __future__ import annotations

import torch
from torch import Tensor


def in_first_block(masked: Tensor, length: Tensor) -> Tensor:
    """(B, W) bool: the masks (B, W) that lie in the first block of ``length`` (B,) positions that has one."""
    position = torch.arange(masked.shape[1], device=masked.device)
    first = masked.int().argmax(dim=1)
    return masked & (position // length[:, None] == (first // length)[:, None])

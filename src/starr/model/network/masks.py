"""Attention masks of block-causal models: a position sees its own block and the blocks before it.

Letters: B rows, Q queries, S keys. Blocks are cut at absolute position 0, wherever the prompt ends.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor


def block_causal(queries: Tensor, keys: Tensor, block: Tensor | int) -> Tensor:
    """(B, Q, S) bool: floor(i / b) >= floor(j / b) for positions i of ``queries`` (B, Q) and j of ``keys`` (B, S).

    ``block`` is one length or one for each row (B,).
    """
    each = block[:, None] if isinstance(block, Tensor) else block
    of_query, of_key = (at.div(each, rounding_mode="floor") for at in (queries, keys))
    return of_query[:, :, None] >= of_key[:, None, :]


def block_mask(length: int, block: int, device: torch.device | None = None) -> Tensor:
    """(1, length, length) bool: the mask of one whole forward."""
    at = torch.arange(length, device=device)[None]
    return block_causal(at, at, block)


def block_spans(start: int, end: int, block: int, origin: int = 0) -> list[tuple[int, int]]:
    """Cut the positions from ``start`` to ``end`` where blocks begin; one block begins at ``origin``."""
    cuts = [start, *(at for at in range(start + 1, end) if (at - origin) % block == 0), end]
    return [(low, high) for low, high in pairwise(cuts) if high > low]

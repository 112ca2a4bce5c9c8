"""Rows of different lengths in one forward without paying for padding: only attention still sees it.

Letters: B rows, S columns of the longest, T real positions in all, H heads, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Packing:
    """Rows laid end to end, and back."""

    index: Tensor  # (T,) int64: the real ones among the B * S places of the padded rows
    rows: int
    columns: int

    @classmethod
    def of(cls, real: Tensor, total: int) -> Packing:
        """For ``real`` (B, S) bool; the host knows their number ``total``, so that nothing waits for a device."""
        return cls((~real).flatten().argsort(stable=True)[:total], *real.shape)

    @property
    def positions(self) -> Tensor:
        """(1, T) int64: each position's place in its row."""
        return (self.index % self.columns)[None]

    def pack(self, x: Tensor) -> Tensor:
        """(B, S, ...) to (1, T, ...)."""
        return x.flatten(0, 1).index_select(0, self.index)[None]

    def find(self, columns: Tensor) -> Tensor:
        """(B, O) of (B, O): where columns of the padded rows lie among the packed; anything for those of padding."""
        place = self.index.new_zeros(self.rows * self.columns)
        place[self.index] = torch.arange(len(self.index), device=self.index.device)
        row = torch.arange(self.rows, device=columns.device)[:, None]
        return place[row * self.columns + columns.clamp(max=self.columns - 1)]

    def spread_heads(self, x: Tensor) -> Tensor:
        """(1, H, T, head_width) to (B, H, S, head_width), zeros in the padding."""
        _, heads, _, width = x.shape
        wide = x.new_zeros(heads, self.rows * self.columns, width).index_copy_(1, self.index, x[0])
        return wide.view(heads, self.rows, self.columns, width).transpose(0, 1)

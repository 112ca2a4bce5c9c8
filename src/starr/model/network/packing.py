"""Rows of different lengths in one forward, without work on padding; only attention still sees padding.

Letters: B rows, S columns of the longest, T real positions in all, H heads, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Packing:
    """Joins rows without their padding, and spreads them again."""

    index: Tensor  # (T,) int64: the real ones among the B * S positions of the padded rows
    rows: int
    columns: int

    @classmethod
    def of(cls, real: Tensor, total: int) -> Packing:
        """Pack ``real`` positions (B, S) bool; the host gives their number ``total``, so that no device waits."""
        return cls((~real).flatten().argsort(stable=True)[:total], *real.shape)

    @property
    def positions(self) -> Tensor:
        """(1, T) int64: the column of each packed position."""
        return (self.index % self.columns)[None]

    def pack(self, x: Tensor) -> Tensor:
        """(B, S, ...) to (1, T, ...)."""
        return x.flatten(0, 1).index_select(0, self.index)[None]

    def find(self, columns: Tensor) -> Tensor:
        """(B, O) of (B, O): the packed index of columns of the padded rows; padding may give any index."""
        packed = self.index.new_zeros(self.rows * self.columns)
        packed[self.index] = torch.arange(len(self.index), device=self.index.device)
        row = torch.arange(self.rows, device=columns.device)[:, None]
        return packed[row * self.columns + columns.clamp(max=self.columns - 1)]

    def spread_heads(self, x: Tensor) -> Tensor:
        """(1, H, T, head_width) to (B, H, S, head_width), zeros in the padding."""
        _, heads, _, width = x.shape
        wide = x.new_zeros(heads, self.rows * self.columns, width).index_copy_(1, self.index, x[0])
        return wide.view(heads, self.rows, self.columns, width).transpose(0, 1)

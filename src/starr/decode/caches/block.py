"""Caches that follow the block: a full forward when it opens, later only what lies near it.

The full forward at a block's first step decides too. The whole canvas is one block without a ``block_length``;
``refresh`` adds full forwards in between. For shifted logits the row before the block, which predicts its first token,
is recomputed as well (Fast-dLLM's Dream code commits that token unseen instead).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from starr.decode.caches.base import Cache, every, never
from starr.named import option
from starr.plugins import register

if TYPE_CHECKING:
    from starr.decode.canvas import Canvas


@dataclass(frozen=True, kw_only=True)
class BlockCache(Cache):
    """What the three have in common."""

    refresh: int = never("steps of a block between full forwards")

    def query(self, canvas: Canvas) -> Tensor:
        return self.full(canvas)[:, None] | self.near(canvas)

    def full(self, canvas: Canvas) -> Tensor:
        """(B,) bool: this step recomputes everything."""
        return (canvas.window.step == 0) | every(canvas.window.step, self.refresh)

    def near(self, canvas: Canvas) -> Tensor:
        """(B, C) bool: what every step recomputes."""
        raise NotImplementedError


@register
@dataclass(frozen=True, kw_only=True)
class Prefix(BlockCache):
    """Recompute the block and everything after it; the whole row when a block opens."""

    name: ClassVar[str] = "prefix"
    paper: ClassVar[str] = "Fast-dLLM, arXiv:2505.22618"

    def near(self, canvas: Canvas) -> Tensor:
        return canvas.column_index >= canvas.window.start[:, None]


@register
@dataclass(frozen=True, kw_only=True)
class Dual(BlockCache):
    """Recompute the block alone; the whole row when a block opens."""

    name: ClassVar[str] = "dual"
    paper: ClassVar[str] = "Fast-dLLM, arXiv:2505.22618"

    def near(self, canvas: Canvas) -> Tensor:
        return canvas.in_window


@register
@dataclass(frozen=True, kw_only=True)
class Vicinity(BlockCache):
    """Recompute the block and a margin on either side; the whole row when a block opens and in the first steps."""

    name: ClassVar[str] = "vicinity"
    paper: ClassVar[str] = "dInfer, arXiv:2510.08666"

    before: int = option(16, "positions before the block", low=0)
    after: int = option(16, "positions after the block", low=0)
    warmup: int = option(4, "first steps of a row that are full forwards", low=0)

    def full(self, canvas: Canvas) -> Tensor:
        return super().full(canvas) | (canvas.total < self.warmup)

    def near(self, canvas: Canvas) -> Tensor:
        index = canvas.column_index
        return (index >= canvas.window.start[:, None] - self.before) & (index < canvas.window.end[:, None] + self.after)

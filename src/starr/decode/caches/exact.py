"""Exact K/V for block-causal models: blocks that are done are never computed again.

K/V of a block depend on tokens of the block and of those before it alone. So they are final, *sealed*, once a forward
has seen the block's final tokens. A forward recomputes the open block, and what lies before it and is not sealed yet:
the prompt's whole blocks in the first forward (prefill), the block just finished in the first forward of the next one
(seal). Positions after the open block are never seen, hence never computed. Letters: B rows, C columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from starr.decode.caches.base import Cache
from starr.named import option
from starr.plugins import register

if TYPE_CHECKING:
    from starr.decode.canvas import Canvas

BLOCK = "block_causal"  # note (B,) int64: positions of a block of attention
SEALED = "sealed"  # note (B, C) bool: K/V of these positions come from final tokens


@register
@dataclass(frozen=True, kw_only=True)
class Exact(Cache):
    """Recompute the open block alone; K/V of finished blocks are kept, which is exact for block-causal models."""

    name: ClassVar[str] = "exact"
    paper: ClassVar[str] = "SDAR, Fast-dLLM v2, LLaDA2"
    block_causal: ClassVar[bool] = True
    sub_blocks: bool = option(False, "Fast-dLLM v2's block cache: recompute only the sub-block, which is not exact")

    def query(self, canvas: Canvas) -> Tensor:
        return open_positions(canvas, shift=False, sub_blocks=self.sub_blocks)


def find_block(canvas: Canvas) -> tuple[Tensor, Tensor]:
    """Start and end (B,) of the block that holds the window (of all its blocks, where it holds several)."""
    size, origin = canvas.notes[BLOCK], canvas.rules.origin
    start = (canvas.window.start - origin).div(size, rounding_mode="floor") * size + origin
    end = -(origin - canvas.window.end).div(size, rounding_mode="floor") * size + origin
    return start.clamp(min=0), end.minimum(canvas.length)


def only_first(canvas: Canvas, shift: bool) -> Tensor:
    """(B,) bool: rows whose next forward gives only the first token of the open block.

    Where logits are shifted, that token comes from the last row of the sealed block before, and the block's other
    tokens are predicted from rows that have seen it. The last allowed step does not wait for it.
    """
    start, end = find_block(canvas)
    one = end - start <= canvas.notes[BLOCK]
    return first_masked(canvas, start) & one & (canvas.total < canvas.limit - 1) & shift


def first_masked(canvas: Canvas, start: Tensor) -> Tensor:
    """(B,) bool: the position ``start`` (B,) holds a mask."""
    return canvas.masked.gather(1, start[:, None])[:, 0]


def open_positions(canvas: Canvas, *, shift: bool, sub_blocks: bool = False) -> Tensor:
    """(B, C) bool: the open block, and what lies before it and is not sealed.

    With ``sub_blocks`` only the window's sub-block, once the block was computed as a whole and the sub-block's first
    token is there.
    """
    at = canvas.column_index
    start, end = find_block(canvas)
    inside = (at >= start[:, None]) & (at < end[:, None]) & ~only_first(canvas, shift)[:, None]
    if sub_blocks:
        since = canvas.window.start - (canvas.window.start - canvas.rules.origin) % canvas.rules.block
        first = since[:, None].clamp(min=0)
        narrow = canvas.buffered.gather(1, first) & ~canvas.masked.gather(1, first)
        inside = inside & (((at >= first) & (at < canvas.window.end[:, None])) | ~narrow)
    before = (at < start[:, None]) & ~canvas.notes[SEALED]
    if shift:
        before = before | ((at == start[:, None] - 1) & first_masked(canvas, start)[:, None])
    return (inside | before) & canvas.valid

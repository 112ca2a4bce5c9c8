"""Block-causal models: blocks are decided from left to right, and finished ones are sealed (``caches.exact``).

Blocks are cut at the row's origin, position 0 for most models, so the first one may begin with the end of the prompt.
All rows of such a model are block-causal; every function here does nothing for rows of other models.
Letters: B rows, C columns, O observed, W window positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from starr.decode.caches.exact import BLOCK, SEALED, find_block, only_first, open_positions
from starr.decode.canvas import Canvas
from starr.decode.request import Request
from starr.errors import InputError


@dataclass(frozen=True, slots=True)
class BlockRows:
    """Block-causal attention of the rows in a batch."""

    length: Tensor  # (B,) int64: of a block
    kept: Tensor  # (B,) bool: K/V of finished blocks are kept; elsewhere everything up to the block's end is computed
    narrow: Tensor  # (B,) bool: only the sub-block is computed
    shift: bool

    @classmethod
    def of(cls, requests: Sequence[Request], shift: bool, device: torch.device) -> BlockRows | None:
        """None for a model with full attention."""
        if any(request.blocks is None for request in requests):
            return None
        found = [(length_of(r), r.cache.buffered, bool(getattr(r.cache, "sub_blocks", False))) for r in requests]
        length, kept, narrow = torch.tensor(found, dtype=torch.int64, device=device).unbind(1)
        return cls(length, kept.bool(), narrow.bool(), shift)

    def query(self, canvas: Canvas) -> Tensor:
        """(B, C) bool: the positions of the next forward."""
        exact = open_positions(canvas, shift=self.shift)
        narrow = open_positions(canvas, shift=self.shift, sub_blocks=True)
        exact = torch.where(self.narrow[:, None], narrow, exact)
        return torch.where(self.kept[:, None], exact, whole_prefix(canvas, self.shift))

    def reach(self, canvas: Canvas) -> Tensor:
        """(B,) int64: no query sees this column or one after it."""
        return find_block(canvas)[1]

    def earlier(self, canvas: Canvas, query: Tensor) -> Tensor:
        """(B,) int64: queried positions before the open block, which are computed for their K/V."""
        start, _ = find_block(canvas)
        return (query & (canvas.column_index < start[:, None]) & self.kept[:, None]).sum(dim=1)

    def seal_past(self, canvas: Canvas) -> Canvas:
        """Seal what lies before the open block: a forward has now computed it from final tokens."""
        start, _ = find_block(canvas)
        return canvas.noted({SEALED: canvas.notes[SEALED] | (canvas.column_index < start[:, None])})

    def seal_full(self, canvas: Canvas) -> Canvas:
        """Seal a full block that a step has not changed: that step's own forward computed it."""
        start, end = find_block(canvas)
        at = canvas.column_index
        inside = (at >= start[:, None]) & (at < end[:, None])
        open_ = (inside & (canvas.masked | canvas.changed)).any(dim=1) | self.narrow
        return canvas.noted({SEALED: canvas.notes[SEALED] | (inside & ~open_[:, None])})

    def commit_first(self, action: Tensor, canvas: Canvas) -> Tensor:
        """Actions (B, W): a forward that gives only the block's first token commits that token and no other."""
        if not self.shift:
            return action
        only = torch.zeros_like(action)
        only[:, 0] = 1
        return torch.where(only_first(canvas, self.shift)[:, None], only, action)


def length_of(request: Request) -> int:
    """The length of a row's blocks of attention; 0 for full attention."""
    return 0 if request.blocks is None else request.blocks.length


def begin_blocks(requests: Sequence[Request], canvas: Canvas) -> Mapping[str, Tensor]:
    """The notes of new rows of a block-causal model; none for others."""
    if any(request.blocks is None for request in requests):
        return {}
    lengths = torch.tensor([length_of(request) for request in requests], device=canvas.window.step.device)
    return {BLOCK: lengths, SEALED: torch.zeros_like(canvas.masked)}


def whole_prefix(canvas: Canvas, shift: bool) -> Tensor:
    """(B, C) bool: everything up to the open block's end, or to its start where that gives its first token."""
    start, end = find_block(canvas)
    return (canvas.column_index < torch.where(only_first(canvas, shift), start, end)[:, None]) & canvas.valid


def check_blocks(request: Request) -> None:
    """Refuse what needs to see or to change more than the open block of a block-causal model."""
    if request.blocks is None:
        return
    if request.cache.buffered and not request.cache.block_causal:
        request.refuse_cache("K/V of a block-causal model need no approximation, exact keeps them as they are")
    first = request.masked.index(True) if True in request.masked else len(request.masked)
    if not all(request.masked[first:]):
        raise InputError(
            "Text after a mask cannot be used: a block-causal model does not see what follows a block.",
            hint="Use a model with full attention.",
            param="prompt",
        )
    why = find_conflict(request)
    if why:
        raise InputError(
            f"{request.strategy.name} cannot be used with a block-causal model: {why}.",
            hint="Use a strategy that decides within a block, e.g. threshold.",
            param="strategy",
        )


def find_conflict(request: Request) -> str | None:
    """Why the row's strategy needs more than the open block."""
    needs = request.strategy.needs()
    if needs.get("growth"):
        return "it moves text to other blocks"
    if request.strategy.scope == "moving":
        return "it cuts blocks of its own, and the model's are fixed"
    if request.strategy.scope != "block":
        return "it looks beyond the open block"
    return "its shadow block needs full attention" if needs.get("shadow") else None

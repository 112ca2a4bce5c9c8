"""The rows being denoised, as one set of tensors; rows join, leave and are stepped together.

Letters: B rows, C columns. Column C-1 is spare: no row reaches it, so padded indices may point there. Prompt, template
and padding are frozen; what is neither masked nor frozen is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from starr.request import Request
from starr.strategy.base import Action

FIGURES = ("confidence", "best", "entropy", "margin", "shadow", "moved", "committed_with")


@dataclass(frozen=True, slots=True)
class Canvas:
    """State of B rows between two steps. (B, C) tensors are per position, (B,) per row."""

    tokens: Tensor  # (B, C) int64
    masked: Tensor  # (B, C) bool
    frozen: Tensor  # (B, C) bool
    endless: Tensor  # (B, C) bool: no end-of-text is proposed here
    changed: Tensor  # (B, C) bool: written by the last step
    proposal: Tensor  # (B, C) int64: last seen
    confidence: Tensor  # (B, C) float32: last seen
    best: Tensor  # (B, C) float32: last seen
    entropy: Tensor  # (B, C) float32: last seen, if anyone asked
    margin: Tensor  # (B, C) float32: last seen, if anyone asked
    shadow: Tensor  # (B, C) float32: last seen, if anyone asked
    seen: Tensor  # (B, C) bool: observed since the window opened
    queried: Tensor  # (B, C) bool: the K/V buffer holds this position
    moved: Tensor  # (B, C) float32: how far its values moved since the buffer got them, if a cache measures
    committed_at: Tensor  # (B, C) int64: step of the last commit
    committed_with: Tensor  # (B, C) float32: confidence at that step
    length: Tensor  # (B,) int64: prompt and canvas positions
    start: Tensor  # (B,) int64: first canvas position
    window_start: Tensor  # (B,) int64
    window_end: Tensor  # (B,) int64
    block: Tensor  # (B,) int64
    windows: Tensor  # (B,) int64
    step: Tensor  # (B,) int64: steps taken in this window
    total: Tensor  # (B,) int64: steps taken in all
    limit: Tensor  # (B,) int64: the last step commits what is left
    extra: Tensor  # (B,) int64: steps allowed after the last mask of a window is gone
    extra_used: Tensor  # (B,) int64
    lookahead: Tensor  # (B,) bool: windows open over the whole rest
    seed: Tensor  # (B,) int64
    ends: Tensor  # (B,) bool: end-of-text ends the row
    literal: Tensor  # (B,) bool
    commits: Tensor  # (B,) int64
    revocations: Tensor  # (B,) int64
    revisions: Tensor  # (B,) int64

    @property
    def columns(self) -> int:
        return self.tokens.shape[1]

    @property
    def valid(self) -> Tensor:
        """(B, C) bool: positions that belong to the row."""
        return self.column_index < self.length[:, None]

    @property
    def column_index(self) -> Tensor:
        """(1, C) int64."""
        return torch.arange(self.columns, device=self.tokens.device)[None]

    @property
    def in_window(self) -> Tensor:
        """(B, C) bool."""
        index = self.column_index
        return (index >= self.window_start[:, None]) & (index < self.window_end[:, None])


def new_canvas(requests: Sequence[Request], device: torch.device) -> Canvas:
    """Fresh rows, with no window open yet (``plan.advance`` opens the first)."""
    columns = max(len(r.tokens) for r in requests) + 1

    def grid(rows: list[list[int]] | list[list[bool]], fill: int) -> Tensor:
        return torch.tensor([row + [fill] * (columns - len(row)) for row in rows], device=device)

    def per_row(values: list[int]) -> Tensor:
        return torch.tensor(values, device=device)

    tokens = grid([r.tokens for r in requests], 0)
    masked = grid([r.masked for r in requests], False)
    start = per_row([r.start for r in requests])
    zero, nothing = torch.zeros_like(start), torch.zeros_like(tokens)
    return Canvas(
        tokens=tokens,
        masked=masked,
        frozen=~masked,
        endless=grid([r.endless for r in requests], False),
        changed=torch.zeros_like(masked),
        proposal=nothing,
        **{name: nothing.float() for name in FIGURES},
        seen=torch.zeros_like(masked),
        queried=torch.zeros_like(masked),
        committed_at=nothing,
        length=per_row([len(r.tokens) for r in requests]),
        start=start,
        window_start=start,
        window_end=start,
        block=per_row([r.block_length or r.length for r in requests]),
        windows=per_row([r.windows for r in requests]),
        step=zero,
        total=zero,
        limit=per_row([r.forward_limit for r in requests]),
        extra=per_row([r.strategy.extra_steps for r in requests]),
        extra_used=zero,
        lookahead=per_row([int(r.strategy.moves_end) for r in requests]).bool(),
        seed=per_row([r.seed for r in requests]),
        ends=per_row([int(r.ends) for r in requests]).bool(),
        literal=per_row([int(r.enforce == "literal") for r in requests]).bool(),
        commits=zero,
        revocations=zero,
        revisions=zero,
    )


def select(canvas: Canvas, rows: Tensor) -> Canvas:
    """Some rows (K,) int64, in that order."""
    return Canvas(**{f.name: getattr(canvas, f.name).index_select(0, rows) for f in fields(canvas)})


def join(first: Canvas, second: Canvas) -> Canvas:
    """All rows of both, widened to the larger number of columns; new columns are frozen padding."""
    columns = max(first.columns, second.columns)

    def widen(tensor: Tensor, name: str) -> Tensor:
        if tensor.dim() == 1 or tensor.shape[1] == columns:
            return tensor
        return F.pad(tensor, (0, columns - tensor.shape[1]), value=int(name == "frozen"))

    names = [f.name for f in fields(first)]
    return Canvas(**{n: torch.cat([widen(getattr(c, n), n) for c in (first, second)]) for n in names})


def apply(canvas: Canvas, index: Tensor, action: Tensor, written: Tensor, mask_id: int) -> Canvas:
    """Carry out actions (B, W) at columns ``index`` (B, W); ``written`` are the tokens of COMMIT and REVISE."""
    commit, revoke, revise = (action == a for a in (Action.COMMIT, Action.REVOKE, Action.REVISE))
    writes = commit | revise
    tokens = torch.where(writes, written, canvas.tokens.gather(1, index)).masked_fill(revoke, mask_id)
    masked = (canvas.masked.gather(1, index) & ~commit) | revoke
    at = torch.where(writes, canvas.total[:, None], canvas.committed_at.gather(1, index))
    confidence = canvas.confidence.gather(1, index)
    with_ = torch.where(writes, confidence, canvas.committed_with.gather(1, index))
    return replace(
        canvas,
        tokens=canvas.tokens.scatter(1, index, tokens),
        masked=canvas.masked.scatter(1, index, masked),
        changed=torch.zeros_like(canvas.changed).scatter(1, index, writes | revoke),
        committed_at=canvas.committed_at.scatter(1, index, at),
        committed_with=canvas.committed_with.scatter(1, index, with_),
        commits=canvas.commits + commit.sum(dim=1),
        revocations=canvas.revocations + revoke.sum(dim=1),
        revisions=canvas.revisions + revise.sum(dim=1),
        step=canvas.step + 1,
        total=canvas.total + 1,
    )


def trim(canvas: Canvas, columns: int) -> Canvas:
    """Drop columns that no row reaches any more."""
    if canvas.columns == columns:
        return canvas
    grids = {f.name: getattr(canvas, f.name) for f in fields(canvas)}
    return replace(canvas, **{name: t[:, :columns] for name, t in grids.items() if t.dim() == 2})

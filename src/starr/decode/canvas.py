"""The rows being denoised, as one set of tensors; rows join, leave and are stepped together.

Letters: B rows, C columns. Column C-1 is spare: no row reaches it, so padded indices may point there. Prompt, template
and padding are frozen; what is neither masked nor frozen is held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from starr.decode.request import Request

ALLOWED_SET = "allowed_set"  # the note (B, C) int64 of constraints: which of its sets a position has, in traced rows


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
    sure: Tensor  # (B, C) float32: confidence that does not saturate, last seen
    entropy: Tensor  # (B, C) float32: last seen, if anyone asked
    margin: Tensor  # (B, C) float32: last seen, if anyone asked
    gap: Tensor  # (B, C) float32: last seen, if anyone asked
    seen: Tensor  # (B, C) bool: observed since the window opened
    buffered: Tensor  # (B, C) bool: the K/V buffer holds this position
    committed_at: Tensor  # (B, C) int64: step of the last commit
    committed_with: Tensor  # (B, C) float32: confidence at that step
    revoked: Tensor  # (B, C) int64: how often
    length: Tensor  # (B,) int64: prompt and canvas positions
    start: Tensor  # (B,) int64: first canvas position
    window_start: Tensor  # (B,) int64
    window_end: Tensor  # (B,) int64
    block: Tensor  # (B,) int64
    origin: Tensor  # (B,) int64: windows end at multiples of ``block`` from here
    goal: Tensor  # (B,) int64: the first column that is cut off from the result
    late: Tensor  # (B,) bool: an end-of-text counts only when its window is closed
    windows: Tensor  # (B,) int64
    step: Tensor  # (B,) int64: steps taken in this window
    total: Tensor  # (B,) int64: steps taken in all
    limit: Tensor  # (B,) int64: the last step commits what is left
    lookahead: Tensor  # (B,) bool: windows open over the whole rest
    lookback: Tensor  # (B,) bool: windows begin at the start of the canvas
    kept_open: Tensor  # (B,) bool: the window stays open although it is full; for one step
    seed: Tensor  # (B,) int64
    ends: Tensor  # (B,) bool: end-of-text ends the row
    literal: Tensor  # (B,) bool: no progress rules, as all of the next three see ``enforce``
    strict: Tensor  # (B,) bool: fewer revocations than commits in each step
    max_revocations: Tensor  # (B,) int64: of one position
    commits: Tensor  # (B,) int64
    revocations: Tensor  # (B,) int64
    revisions: Tensor  # (B,) int64
    notes: Mapping[str, Tensor] = field(default_factory=dict)  # guests' memory: (B,), (B, C) or (B, C, D)

    @property
    def columns(self) -> int:
        """Columns of the canvas, the spare one included."""
        return self.tokens.shape[1]

    @property
    def valid(self) -> Tensor:
        """(B, C) bool: positions that belong to the row."""
        return self.column_index < self.length[:, None]

    @property
    def column_index(self) -> Tensor:
        """(1, C) int64."""
        return torch.arange(self.columns, device=self.tokens.device)[None]

    def noted(self, notes: Mapping[str, Tensor]) -> Canvas:
        """The canvas with these notes beside the others."""
        return replace(self, notes={**self.notes, **notes})

    @property
    def in_window(self) -> Tensor:
        """(B, C) bool."""
        index = self.column_index
        return (index >= self.window_start[:, None]) & (index < self.window_end[:, None])


def new_canvas(requests: Sequence[Request], device: torch.device) -> Canvas:
    """Fresh rows, with no window open yet (``window.advance`` opens the first)."""
    columns = max(len(r.tokens) for r in requests) + 1

    def grid(rows: list[list[int]] | list[list[bool]], fill: int) -> Tensor:
        return torch.tensor([row + [fill] * (columns - len(row)) for row in rows], device=device)

    def per_row(values: list[int]) -> Tensor:
        return torch.tensor(values, device=device)

    tokens = grid([r.tokens for r in requests], 0)
    masked = grid([r.masked for r in requests], False)
    start = per_row([r.start for r in requests])
    zero, nothing = torch.zeros_like(start), torch.zeros_like(tokens)
    blank = nothing.float()
    return Canvas(
        tokens=tokens,
        masked=masked,
        frozen=~masked,
        endless=grid([r.endless for r in requests], False),
        changed=torch.zeros_like(masked),
        proposal=nothing,
        confidence=blank,
        best=blank,
        sure=blank,
        entropy=blank,
        margin=blank,
        gap=blank,
        committed_with=blank,
        seen=torch.zeros_like(masked),
        buffered=torch.zeros_like(masked),
        committed_at=nothing,
        revoked=nothing,
        length=per_row([len(r.tokens) for r in requests]),
        start=start,
        window_start=start,
        window_end=start,
        block=per_row([r.block_length or r.length for r in requests]),
        origin=per_row([r.origin for r in requests]),
        goal=per_row([len(r.tokens) - r.surplus for r in requests]),
        late=per_row([int(r.blocks is not None and r.strategy.revokes()) for r in requests]).bool(),
        windows=per_row([r.windows for r in requests]),
        step=zero,
        total=zero,
        limit=per_row([r.step_limit for r in requests]),
        lookahead=per_row([int(r.strategy.scope in ("ahead", "moving")) for r in requests]).bool(),
        lookback=per_row([int(r.strategy.scope == "back") for r in requests]).bool(),
        kept_open=zero.bool(),
        seed=per_row([r.options.seed for r in requests]),
        ends=per_row([int(r.ends) for r in requests]).bool(),
        literal=per_row([int(r.literal) for r in requests]).bool(),
        strict=per_row([int(r.options.enforce != "bounded") for r in requests]).bool(),
        max_revocations=per_row([r.options.max_revocations for r in requests]),
        commits=zero,
        revocations=zero,
        revisions=zero,
    )


def each(canvas: Canvas, change: Callable[[Tensor, str], Tensor]) -> Canvas:
    """The canvas with every tensor replaced by ``change(tensor, name)``, notes included."""
    tensors = {f.name: change(getattr(canvas, f.name), f.name) for f in fields(canvas) if f.name != "notes"}
    return Canvas(**tensors, notes={name: change(note, name) for name, note in canvas.notes.items()})


def select(canvas: Canvas, rows: Tensor) -> Canvas:
    """Some rows (K,) int64, in that order."""
    return each(canvas, lambda tensor, _: tensor.index_select(0, rows))


def join(first: Canvas, second: Canvas) -> Canvas:
    """All rows of both, widened to the larger number of columns; new columns are frozen padding."""
    columns = max(first.columns, second.columns)
    first, second = widen(first, columns), widen(second, columns)
    noted = {name: note_of(first, name, second) for name in {**first.notes, **second.notes}}
    names = [f.name for f in fields(first) if f.name != "notes"]
    joined = {name: torch.cat([getattr(first, name), getattr(second, name)]) for name in names}
    return Canvas(**joined, notes=noted)


def widen(canvas: Canvas, columns: int) -> Canvas:
    """More columns, as frozen padding."""
    more = columns - canvas.columns

    def wider(tensor: Tensor, name: str) -> Tensor:
        inner = (0, 0) * (tensor.dim() - 2)  # a note may have more dimensions than its columns
        return tensor if tensor.dim() == 1 else F.pad(tensor, (*inner, 0, more), value=int(name == "frozen"))

    return each(canvas, wider)


def note_of(first: Canvas, name: str, second: Canvas) -> Tensor:
    """A note of all rows of both canvases; zeros in the one that does not have it."""
    like = first.notes[name] if name in first.notes else second.notes[name]
    parts = [c.notes.get(name, like.new_zeros(len(c.length), *like.shape[1:])) for c in (first, second)]
    return torch.cat(parts)


def trim(canvas: Canvas, columns: int) -> Canvas:
    """Drop columns that no row reaches any more."""
    if canvas.columns == columns:
        return canvas
    return each(canvas, lambda tensor, _: tensor if tensor.dim() == 1 else tensor[:, :columns])


@dataclass(frozen=True, slots=True)
class Columns:
    """Chosen columns of each row, packed to the left and padded with the spare column."""

    index: Tensor  # (B, O) int64
    count: Tensor  # (B,) int64

    @property
    def real(self) -> Tensor:
        """(B, O) bool: not padding."""
        return torch.arange(self.index.shape[1], device=self.index.device) < self.count[:, None]


def columns_where(chosen: Tensor, most: int) -> Columns:
    """The True columns of (B, C), at most ``most`` per row, in order."""
    columns = chosen.shape[1]
    rank = torch.where(chosen, chosen.cumsum(dim=1) - 1, most)
    source = torch.arange(columns, device=chosen.device).expand_as(chosen)
    packed = torch.full((chosen.shape[0], most + 1), columns - 1, device=chosen.device)
    return Columns(packed.scatter_(1, rank, source)[:, :most], chosen.sum(dim=1))


def window_index(canvas: Canvas, width: int) -> Tensor:
    """(B, W) int64: columns of each row's window, the spare column beyond its width."""
    offset = torch.arange(width, device=canvas.tokens.device)[None]
    own = canvas.window_end - canvas.window_start
    return torch.where(offset < own[:, None], canvas.window_start[:, None] + offset, canvas.columns - 1)

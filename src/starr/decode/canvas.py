"""The rows being denoised, as one set of tensors; rows join, leave and are stepped together.

Letters: B rows, C columns. Column C-1 is spare: no row reaches it, so padded indices may point there. Prompt, template
and padding are frozen; what is neither masked nor frozen is held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from starr.decode.request import Request

ALLOWED_SET = "allowed_set"  # the note (B, C) int64 of constraints: which of its sets a position has, in traced rows

P = TypeVar("P", bound=Any)  # a canvas, or a part of one


@dataclass(frozen=True, slots=True)
class LastSeen:
    """What the model said last of each position, (B, C); ``entropy``, ``margin`` and ``gap`` if anyone asked."""

    proposal: Tensor  # int64
    confidence: Tensor  # float32
    best: Tensor  # float32
    sure: Tensor  # float32: confidence that does not saturate
    entropy: Tensor  # float32
    margin: Tensor  # float32
    gap: Tensor  # float32
    seen: Tensor  # bool: observed since the window opened


@dataclass(frozen=True, slots=True)
class Window:
    """The open window of each row, (B,)."""

    start: Tensor  # int64
    end: Tensor  # int64
    step: Tensor  # int64: steps taken in this window
    kept_open: Tensor  # bool: it stays open although it is full; for one step


@dataclass(frozen=True, slots=True)
class Done:
    """What was done to each position, (B, C), and how often in the row, (B,)."""

    committed_at: Tensor  # (B, C) int64: step of the last commit
    committed_with: Tensor  # (B, C) float32: confidence at that step
    revoked: Tensor  # (B, C) int64: how often
    commits: Tensor  # (B,) int64
    revocations: Tensor  # (B,) int64
    revisions: Tensor  # (B,) int64


@dataclass(frozen=True, slots=True)
class Rules:
    """What a request fixes for its row, (B,) unless said."""

    start: Tensor  # int64: first canvas position
    block: Tensor  # int64
    origin: Tensor  # int64: windows end at multiples of ``block`` from here
    windows: Tensor  # int64
    late: Tensor  # bool: an end-of-text counts only when its window is closed
    lookahead: Tensor  # bool: windows open over the whole rest
    lookback: Tensor  # bool: windows begin at the start of the canvas
    seed: Tensor  # int64
    ends: Tensor  # bool: end-of-text ends the row
    endless: Tensor  # (B, C) bool: no end-of-text is proposed here
    literal: Tensor  # bool: no progress rules, as all of the next two see ``enforce``
    strict: Tensor  # bool: fewer revocations than commits in each step
    max_revocations: Tensor  # int64: of one position


@dataclass(frozen=True, slots=True)
class Canvas:
    """State of B rows between two steps. (B, C) tensors are per position, (B,) per row.

    tokens: (B, C) int64, the mask id where masked.
    masked: (B, C) bool: still to be decided.
    frozen: (B, C) bool: prompt, template and padding, which never change.
    changed: (B, C) bool: written by the last step.
    buffered: (B, C) bool: the K/V buffer holds this position.
    length: (B,) int64: prompt and canvas positions.
    goal: (B,) int64: the first column that is cut off from the result.
    total: (B,) int64: steps taken in all.
    limit: (B,) int64: the last step commits what is left.
    window: the open window of each row.
    last: what the model said last of each position.
    done: what was done to each position, and how often.
    rules: what a request fixes for its row.
    notes: guests' memory: (B,), (B, C) or (B, C, D).
    """

    tokens: Tensor
    masked: Tensor
    frozen: Tensor
    changed: Tensor
    buffered: Tensor
    length: Tensor
    goal: Tensor
    total: Tensor
    limit: Tensor
    window: Window
    last: LastSeen
    done: Done
    rules: Rules
    notes: Mapping[str, Tensor] = field(default_factory=dict)

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
        return (index >= self.window.start[:, None]) & (index < self.window.end[:, None])


def new_canvas(requests: Sequence[Request], device: torch.device) -> Canvas:
    """Fresh rows, with no window open yet (``window.advance`` opens the first)."""
    columns = max(len(r.tokens) for r in requests) + 1

    def grid(rows: list[list[int]] | list[list[bool]], fill: int) -> Tensor:
        return torch.tensor([row + [fill] * (columns - len(row)) for row in rows], device=device)

    def per_row(values: list[int]) -> Tensor:
        return torch.tensor(values, device=device)

    def flags(values: list[bool]) -> Tensor:
        return torch.tensor(values, device=device)

    tokens = grid([r.tokens for r in requests], 0)
    masked = grid([r.masked for r in requests], False)
    start = per_row([r.start for r in requests])
    zero, nothing, never = torch.zeros_like(start), torch.zeros_like(tokens), torch.zeros_like(masked)
    blank = nothing.float()
    return Canvas(
        tokens=tokens,
        masked=masked,
        frozen=~masked,
        changed=never,
        buffered=never,
        length=per_row([len(r.tokens) for r in requests]),
        goal=per_row([len(r.tokens) - r.surplus for r in requests]),
        total=zero,
        limit=per_row([r.step_limit for r in requests]),
        window=Window(start, start, step=zero, kept_open=zero.bool()),
        last=LastSeen(nothing, blank, blank, blank, blank, blank, blank, seen=never),
        done=Done(nothing, blank, nothing, commits=zero, revocations=zero, revisions=zero),
        rules=Rules(
            start=start,
            block=per_row([r.block_length or r.length for r in requests]),
            origin=per_row([r.origin for r in requests]),
            windows=per_row([r.windows for r in requests]),
            late=flags([r.blocks is not None and r.strategy.revokes() for r in requests]),
            lookahead=flags([r.strategy.scope in ("ahead", "moving") for r in requests]),
            lookback=flags([r.strategy.scope == "back" for r in requests]),
            seed=per_row([r.options.seed for r in requests]),
            ends=flags([r.ends for r in requests]),
            endless=grid([r.endless for r in requests], False),
            literal=flags([r.literal for r in requests]),
            strict=flags([r.options.enforce != "bounded" for r in requests]),
            max_revocations=per_row([r.options.max_revocations for r in requests]),
        ),
    )


def each(part: P, change: Callable[[Tensor, str], Tensor]) -> P:
    """A canvas, or a part of one, with every tensor replaced by ``change(tensor, name)``, notes included."""

    def changed(value: Any, name: str) -> Any:
        if isinstance(value, Tensor):
            return change(value, name)
        if isinstance(value, Mapping):
            return {note: change(tensor, note) for note, tensor in value.items()}
        return each(value, change)

    new: P = type(part)(**{f.name: changed(getattr(part, f.name), f.name) for f in fields(part)})
    return new


def select(canvas: Canvas, rows: Tensor) -> Canvas:
    """Some rows (K,) int64, in that order."""
    return each(canvas, lambda tensor, _: tensor.index_select(0, rows))


def join(first: Canvas, second: Canvas) -> Canvas:
    """All rows of both, widened to the larger number of columns; new columns are frozen padding."""
    columns = max(first.columns, second.columns)
    first, second = widen(first, columns), widen(second, columns)
    noted = {name: note_of(first, name, second) for name in {**first.notes, **second.notes}}
    return replace(stack(first, second), notes=noted)


def stack(first: P, second: P) -> P:
    """The rows of two canvases, or of the same part of two, without notes."""
    pairs = {f.name: (getattr(first, f.name), getattr(second, f.name)) for f in fields(first) if f.name != "notes"}
    new: P = type(first)(
        **{name: torch.cat(ab) if isinstance(ab[0], Tensor) else stack(*ab) for name, ab in pairs.items()}
    )
    return new


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
    own = canvas.window.end - canvas.window.start
    return torch.where(offset < own[:, None], canvas.window.start[:, None] + offset, canvas.columns - 1)

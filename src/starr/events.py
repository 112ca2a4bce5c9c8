"""What leaves the engine: an event per step for rows that are watched, a Generation when a row is done."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from starr.canvas import Canvas, select
from starr.request import Request
from starr.strategy.registry import text_form
from starr.text import CanvasText, settled_text, until_end
from starr.trace import Generation, Record, Stats, Trace

if TYPE_CHECKING:
    from starr.model.load import Model

CANVAS_FIELDS = ("tokens", "masked", "frozen", "committed_at", "committed_with")


@dataclass(frozen=True, slots=True)
class StepTensors:
    """One step of the whole batch, kept on the device until a row that is traced needs it."""

    columns: dict[str, Tensor]  # (B, W) each
    width: Tensor  # (B,) int64
    offset: Tensor  # (B,) int64: window start relative to the canvas start
    cached: dict[str, list[list[float]]] = field(default_factory=dict)

    def row(self, name: str, row: int, width: int) -> list[float] | None:
        """One row's values; each tensor crosses to the host once, whoever asks."""
        if name not in self.columns:
            return None
        if name not in self.cached:
            self.cached[name] = self.columns[name].tolist()
        return self.cached[name][row][:width]


@dataclass(slots=True)
class Row:
    """Host side of a row being decoded."""

    id: int
    request: Request
    length: int  # prompt and canvas positions; more than the request's where a strategy grows the canvas
    started: float = field(default_factory=perf_counter)
    forwards: int = 0
    full_forwards: int = 0
    positions: int = 0
    padded: int = 0
    buffer_bytes: int = 0
    shown: str = ""
    history: list[tuple[StepTensors, int, float, int]] = field(default_factory=list)  # step, row, seconds, positions

    def record(self, at: int) -> Record:
        """The record of step ``at``."""
        step, row, seconds, positions = self.history[at]
        width, offset = int(step.width[row]), int(step.offset[row])
        values = {name: step.row(name, row, width) for name in step.columns}
        threshold, label = values.pop("threshold", None), values.pop("label", None)
        if threshold is not None and all(math.isnan(v) for v in threshold):
            threshold = None
        return Record(
            step=at,
            seconds=seconds,
            positions=positions,
            window=(offset, offset + width),
            threshold=threshold,
            label=None if label is None or not any(label) else [int(v) for v in label],
            **values,  # type: ignore[arg-type]
        )


@dataclass(frozen=True)
class Event:
    """A step of one row. ``text`` is settled text: it only grows, and no later event contradicts it."""

    id: int
    text: str
    done: bool
    final: Final = field(repr=False)
    settled: int  # leading canvas positions that can never change again
    row: Row = field(repr=False)
    model: Model = field(repr=False)
    generation: Generation | None = field(default=None, repr=False)

    @property
    def tokens(self) -> list[int]:
        """The whole canvas; the mask id where masked."""
        return self.final.text.tokens

    @property
    def masked(self) -> list[bool]:
        return self.final.text.masked

    @cached_property
    def canvas(self) -> list[tuple[str, str]]:
        """(text of the token, state) for every canvas position; state is masked, held or settled."""
        piece = self.model.tokenizer.piece
        return [
            ("", "masked") if masked else (piece(token), "settled" if i < self.settled else "held")
            for i, (token, masked) in enumerate(zip(self.tokens, self.masked, strict=True))
        ]

    @cached_property
    def record(self) -> Record | None:
        """The step's record, where the request asked for a trace."""
        return self.row.record(len(self.row.history) - 1) if self.row.history else None

    @cached_property
    def stats(self) -> Stats:
        """Figures so far."""
        return stats_of(self.row, self.final, self.final.text.kept(self.model.spec.eos_ids, self.row.request.ends))


def stats_of(row: Row, final: Final, kept: list[int]) -> Stats:
    """Figures of a row whose text stands at the positions ``kept``; template text is not counted."""
    text = final.text
    commits, revocations, revisions = final.counts
    return Stats(
        forwards=row.forwards,
        full_forwards=row.full_forwards,
        positions=row.positions,
        padded_positions=row.padded,
        tokens=text.made(kept),
        canvas_tokens=text.made([place for place, masked in enumerate(text.masked) if not masked]),
        seconds=perf_counter() - row.started,
        commits=commits,
        revocations=revocations,
        revisions=revisions,
        row_positions=row.length,
        buffer_bytes=row.buffer_bytes,
    )


@dataclass(frozen=True, slots=True)
class Final:
    """A row's canvas as it is, or was at the end."""

    text: CanvasText
    committed_at: list[int]
    committed_with: list[float]
    counts: tuple[int, int, int]  # commits, revocations, revisions


def finish(row: Row, final: Final, model: Model) -> Generation:
    """The result of a row that is done."""
    request, spec = row.request, model.spec
    kept = final.text.kept(spec.eos_ids, request.ends)
    tokens = [final.text.tokens[place] for place in kept]
    result = Generation(
        text=model.tokenizer.decode(tokens),
        tokens=tokens,
        finish_reason="stop" if len(kept) < len(final.text.tokens) or not request.ends else "length",
        model=model.name,
        strategy=text_form(request.strategy),
        cache=text_form(request.cache),
        seed=request.seed,
        prompt_tokens=request.start,
        stats=stats_of(row, final, kept),
        commit_steps=[final.committed_at[place] for place in kept],
        logprobs=[math.log(max(final.committed_with[place], 1e-6)) for place in kept],
    )
    return replace(result, trace=trace_of(row, result, final.text, model)) if request.trace else result


def trace_of(row: Row, result: Generation, text: CanvasText, model: Model) -> Trace:
    """Everything a viewer needs; masks that were dropped show as end-of-text."""
    whole = [model.spec.eos_ids[0] if m else t for t, m in zip(text.tokens, text.masked, strict=True)]
    records = [row.record(i) for i in range(len(row.history))]
    used = {token for r in records for token in (*r.tokens, *r.proposal)} | set(whole)
    return Trace(
        model=result.model,
        strategy=result.strategy,
        cache=result.cache,
        prompt=row.request.prompt,
        prompt_tokens=result.prompt_tokens,
        length=len(whole),
        mask_id=model.spec.mask_id,
        steps=records,
        tokens=whole,
        pieces={token: model.tokenizer.piece(token) for token in sorted(used)},
        text=result.text,
        stats=result.stats,
    )


def events_of(rows: list[Row], canvas: Canvas, settled: list[int], finished: set[int], model: Model) -> list[Event]:
    """Events of the rows that are streamed or ``finished``; only their tokens leave the device."""
    watched = [i for i, row in enumerate(rows) if row.request.stream or i in finished]
    if not watched:
        return []
    chosen = select(canvas, torch.tensor(watched, device=canvas.tokens.device))
    counts = torch.stack([chosen.commits, chosen.revocations, chosen.revisions], dim=1).tolist()
    grids = [getattr(chosen, n).tolist() for n in CANVAS_FIELDS]
    events = []
    for k, i in enumerate(watched):
        row = rows[i]
        part = slice(row.request.start, row.length)
        tokens, masked, frozen, at, with_ = (grid[k][part] for grid in grids)
        final = Final(CanvasText(tokens, masked, frozen), at, with_, tuple(counts[k]))
        until = len(tokens) if i in finished else settled[i] - row.request.start
        events.append(event_of(row, final, until, i in finished, model))
    return events


def event_of(row: Row, final: Final, settled: int, done: bool, model: Model) -> Event:
    result = finish(row, final, model) if done else None
    if result is None and row.request.ends:
        kept = until_end(final.text.tokens[:settled], model.spec.eos_ids)
        row.shown = settled_text(model.tokenizer, kept, row.shown)
    return Event(
        id=row.id,
        text=row.shown if result is None else result.text,
        done=done,
        final=final,
        settled=settled,
        row=row,
        model=model,
        generation=result,
    )

"""What leaves the engine: an event per step for rows that are watched, a Generation when a row is done."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING

from torch import Tensor

from starr.request import Request
from starr.strategy.registry import text_form
from starr.text import settled_text, until_end
from starr.trace import Generation, Record, Stats, Trace

if TYPE_CHECKING:
    from starr.model.load import Model


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
    tokens: list[int] = field(repr=False)  # the whole canvas; the mask id where masked
    masked: list[bool] = field(repr=False)
    settled: int  # leading canvas positions that can never change again
    row: Row = field(repr=False)
    model: Model = field(repr=False)
    commits: int = 0
    revocations: int = 0
    generation: Generation | None = field(default=None, repr=False)

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
        kept = until_end([t for t, m in zip(self.tokens, self.masked, strict=True) if not m], self.model.spec.eos_ids)
        return stats_of(self.row, len(kept), self.masked.count(False), (self.commits, self.revocations, 0))


def stats_of(row: Row, tokens: int, canvas_tokens: int, counts: tuple[int, int, int]) -> Stats:
    commits, revocations, revisions = counts
    return Stats(
        forwards=row.forwards,
        full_forwards=row.full_forwards,
        positions=row.positions,
        padded_positions=row.padded,
        tokens=tokens,
        canvas_tokens=canvas_tokens,
        seconds=perf_counter() - row.started,
        commits=commits,
        revocations=revocations,
        revisions=revisions,
        row_positions=len(row.request.tokens),
        buffer_bytes=row.buffer_bytes,
    )


@dataclass(frozen=True, slots=True)
class Final:
    """A finished row's canvas, on the host."""

    tokens: list[int]
    masked: list[bool]  # only behind an end-of-text: dropped
    committed_at: list[int]
    committed_with: list[float]
    counts: tuple[int, int, int]  # commits, revocations, revisions


def finish(row: Row, final: Final, model: Model) -> Generation:
    """The result of a row that is done."""
    request, spec = row.request, model.spec
    dropped = [spec.eos_ids[0] if m else t for t, m in zip(final.tokens, final.masked, strict=True)]
    kept = until_end(dropped, spec.eos_ids) if request.ends else dropped
    text = model.tokenizer.decode(kept)
    stats = stats_of(row, len(kept), final.masked.count(False), final.counts)
    names = {"model": model.name, "strategy": text_form(request.strategy), "cache": text_form(request.cache)}
    trace = None
    if request.trace:
        records = [row.record(i) for i in range(len(row.history))]
        used = {t for r in records for t in (*r.tokens, *r.proposal)} | set(dropped)
        trace = Trace(
            **names,
            prompt=request.prompt,
            prompt_tokens=request.start,
            length=len(final.tokens),
            mask_id=spec.mask_id,
            steps=records,
            tokens=dropped,
            pieces={token: model.tokenizer.piece(token) for token in sorted(used)},
            text=text,
            stats=stats,
        )
    return Generation(
        text=text,
        tokens=kept,
        finish_reason="stop" if len(kept) < len(dropped) else "length",
        seed=request.seed,
        prompt_tokens=request.start,
        stats=stats,
        trace=trace,
        commit_steps=final.committed_at[: len(kept)],
        logprobs=[math.log(max(c, 1e-6)) for c in final.committed_with[: len(kept)]],
        **names,
    )


def event_of(row: Row, model: Model, tokens: list[int], masked: list[bool], settled: int) -> Event:
    """An event of a row that goes on."""
    kept = until_end(tokens[:settled], model.spec.eos_ids)
    row.shown = settled_text(model.tokenizer, kept, row.shown)
    return Event(row.id, row.shown, False, tokens, masked, settled, row, model)

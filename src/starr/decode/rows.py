"""The host side of rows being decoded: what they have cost so far, and what they show."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from starr.decode.canvas import Canvas, select
from starr.decode.query import RowFigures
from starr.decode.request import Request
from starr.decode.result import Event, KeptStep, Snapshot, StepTensors, generation_of
from starr.decode.text import CanvasText, settled_text, until_end
from starr.decode.trace import PhaseCost, Stats

if TYPE_CHECKING:
    from starr.model.load import Model


@dataclass(frozen=True, slots=True)
class StepCost:
    """What one step of one row cost; the parts that are padding are counted apart."""

    forwards: int
    positions: int
    padded: int
    full_forwards: int
    phase: str = "denoise"  # or "prefill" or "seal", where the forward did nothing else
    earlier: int = 0  # positions of a block-causal row computed for their K/V alone


@dataclass(slots=True)
class LiveRow:
    """One row while it is decoded."""

    id: int
    request: Request
    length: int  # prompt and canvas positions; more than the request's where a strategy grows the canvas
    started: float = field(default_factory=perf_counter)
    forwards: int = 0
    full_forwards: int = 0
    positions: int = 0
    padded: int = 0
    buffer_bytes: int = 0
    prefill: PhaseCost = field(default_factory=PhaseCost)
    seal: PhaseCost = field(default_factory=PhaseCost)
    booked: float = field(default_factory=perf_counter)  # when the last step was booked
    shown: str = ""
    history: list[KeptStep] = field(default_factory=list)

    @property
    def watched(self) -> bool:
        """Whether every step gives an event."""
        return self.request.stream

    def book(self, cost: StepCost, tensors: StepTensors | None, place: int) -> None:
        """Add a step; ``place`` is the row's among the step's ``tensors``."""
        self.forwards += cost.forwards
        self.positions += cost.positions
        self.padded += cost.padded
        seconds = perf_counter() - self.booked
        self.booked += seconds
        kept = self.seal if self.forwards > cost.forwards else self.prefill
        kept.forwards += cost.forwards * (cost.phase != "denoise")
        kept.positions += cost.earlier
        kept.seconds += seconds * cost.earlier / max(cost.positions, 1)
        self.full_forwards += cost.full_forwards
        if tensors is not None and self.request.kept:
            age, goal = self.booked - self.started, self.length - self.request.start - self.request.surplus
            self.history.append(KeptStep(len(self.history), tensors, place, age, cost.positions, goal))

    def stats(self, text: CanvasText, kept: list[int], counts: Counts) -> Stats:
        """Figures so far; the text stands at the positions ``kept``, template text is not counted."""
        return Stats(
            forwards=self.forwards,
            full_forwards=self.full_forwards,
            positions=self.positions,
            padded_positions=self.padded,
            tokens=text.made(kept),
            canvas_tokens=text.made([place for place, masked in enumerate(text.masked) if not masked]),
            seconds=perf_counter() - self.started,
            commits=counts.commits,
            revocations=counts.revocations,
            revisions=counts.revisions,
            row_positions=self.length,
            buffer_bytes=self.buffer_bytes,
            prefill=replace(self.prefill),
            seal=replace(self.seal),
        )


@dataclass(frozen=True, slots=True)
class Counts:
    """What was done to a row's tokens."""

    commits: int
    revocations: int
    revisions: int


def events_of(rows: list[LiveRow], canvas: Canvas, figures: RowFigures, model: Model) -> list[Event]:
    """Events of the rows that are watched or done; only their tokens leave the device."""
    chosen = [i for i, row in enumerate(rows) if row.watched or figures.done[i]]
    if not chosen:
        return []
    part = select(canvas, torch.tensor(chosen, device=canvas.tokens.device))
    counts = [
        Counts(*c) for c in torch.stack([part.done.commits, part.done.revocations, part.done.revisions], dim=1).tolist()
    ]
    tokens, masked, frozen = part.tokens.tolist(), part.masked.tolist(), part.frozen.tolist()
    at, confidence = part.done.committed_at.tolist(), part.done.committed_with.tolist()
    events = []
    for k, i in enumerate(chosen):
        own = slice(rows[i].request.start, rows[i].length - rows[i].request.surplus)
        text = CanvasText(tokens[k][own], masked[k][own], frozen[k][own])
        snapshot = Snapshot(text, at[k][own], confidence[k][own], rows[i].history)
        done = bool(figures.done[i])
        whole = len(text.tokens)
        settled = whole if done else min(whole, figures.settled[i] - rows[i].request.start)
        events.append(event_of(rows[i], snapshot, counts[k], settled, done, model))
    return events


def event_of(row: LiveRow, snapshot: Snapshot, counts: Counts, settled: int, done: bool, model: Model) -> Event:
    """One row's step as a value; ``settled`` canvas positions can never change again."""
    text, request = snapshot.text, row.request
    kept = text.kept(model.spec.eos_ids, request.ends)
    stats = row.stats(text, kept, counts)
    result = generation_of(request, snapshot, stats, row.history, model) if done else None
    if result is None and request.ends:
        whole = until_end(text.tokens[:settled], model.spec.eos_ids)
        row.shown = settled_text(model.tokenizer, whole, row.shown)
    return Event(
        id=row.id,
        text=row.shown if result is None else result.text,
        done=done,
        settled=settled,
        places=[place for place in kept if place < settled],
        snapshot=snapshot,
        stats=stats,
        kept=row.history[-1] if request.trace and row.history else None,
        tokenizer=model.tokenizer,
        generation=result,
    )

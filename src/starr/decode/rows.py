"""The host side of rows being decoded: what they have cost so far, and what they show."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from starr.decode.canvas import Canvas, select
from starr.decode.query import RowFigures
from starr.decode.request import Request
from starr.decode.result import Event, KeptStep, Snapshot, StepTensors, generation_of, trace_of
from starr.decode.text import CanvasText, cut_at, sendable, settled_text, until_end, within
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
    settled: str = ""  # text that can never change again, stop strings included
    shown: str = ""  # text of the last event
    history: list[KeptStep] = field(default_factory=list)

    @property
    def read(self) -> bool:
        """Whether the text is read after every step: for an event, or to find a stop string."""
        return self.request.stream or bool(self.request.options.stop)

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
    """Events of the rows that are streamed or done; only tokens of rows that are read leave the device."""
    chosen = [i for i, row in enumerate(rows) if row.read or figures.done[i]]
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
    return [event for event, i in zip(events, chosen, strict=True) if event.done or rows[i].request.stream]


def event_of(row: LiveRow, snapshot: Snapshot, counts: Counts, settled: int, done: bool, model: Model) -> Event:
    """One row's step as a value; ``settled`` canvas positions can never change again.

    A row is over when its canvas is ``done``, or when its settled text has a stop string. A traced row goes on until
    its canvas is done, so that its trace is complete; its text ends at the stop string all the same.
    """
    canvas, request, tokenizer = snapshot.text, row.request, model.tokenizer
    kept = canvas.kept(model.spec.eos_ids, request.ends)
    places = [place for place in kept if place < settled]
    stats = row.stats(canvas, kept, counts)
    if done:
        row.settled = tokenizer.decode([canvas.tokens[place] for place in kept])
    elif request.ends:
        whole = until_end(canvas.tokens[:settled], model.spec.eos_ids)
        row.settled = settled_text(tokenizer, whole, row.settled)
    end = cut_at(row.settled, request.options.stop)
    over = done or (end is not None and not request.options.trace)
    text = row.settled[:end] if over else sendable(row.settled, request.options.stop)
    if end is not None:
        places = places[: within([canvas.tokens[place] for place in places], text, model)]
    result = None
    if over:
        result = generation_of(request, snapshot, text, places, stats, model, stopped=end is not None)
        if request.options.trace:
            result = replace(result, trace=trace_of(request, snapshot, row.settled, stats, model))
    delta, row.shown = text[len(row.shown) :], text
    return Event(
        id=row.id,
        text=text,
        done=over,
        settled=settled,
        places=places,
        snapshot=snapshot,
        stats=stats if result is None else result.stats,
        kept=row.history[-1] if request.options.trace and row.history else None,
        tokenizer=tokenizer,
        generation=result,
        delta=delta,
    )

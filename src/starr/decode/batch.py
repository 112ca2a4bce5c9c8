"""The rows that are decoded together: they join and leave between steps, and each keeps its own figures.

Everything that depends on which rows are there is laid out anew when they change: canvas, settings, groups, guests, K/V
buffer and the coming query.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from starr.decode.advance import advance
from starr.decode.blocks import begin_blocks
from starr.decode.canvas import Canvas, columns_where, join, new_canvas, select, trim, window_index
from starr.decode.decide import Group, regroup
from starr.decode.extras import GUESTS
from starr.decode.extras.base import Guest, ask, invite
from starr.decode.forward import ForwardCall
from starr.decode.query import QueryPlan, RowFigures, Wishes, plan_query
from starr.decode.request import Request
from starr.decode.result import Event, StepTensors
from starr.decode.rows import LiveRow, StepCost, events_of
from starr.decode.settings import RowSettings, settings_of
from starr.model.network.transformer import KVBuffer, Transformer

if TYPE_CHECKING:
    from starr.model.load import Model


class Batch:
    """Rows in their places: place i of every list and tensor is the same row."""

    canvas: Canvas
    settings: RowSettings
    plan: QueryPlan

    def __init__(self, model: Model, max_rows: int) -> None:
        self.model, self.max_rows = model, max_rows
        self.eos_ids = torch.tensor(model.spec.eos_ids, device=model.device)
        self.waiting: deque[LiveRow] = deque()
        self.rows: list[LiveRow] = []
        self.groups: list[Group] = []
        self.guests: list[Guest] = []
        self.buffer: KVBuffer | None = None
        self.ids = count()

    @property
    def traced(self) -> bool:
        """Whether any row keeps its steps."""
        return any(row.request.kept for row in self.rows)

    @property
    def candidates(self) -> int:
        """How many of the likeliest tokens are kept for every step."""
        return max(row.request.candidates for row in self.rows)

    def enqueue(self, request: Request) -> int:
        """Let a request wait for a place; gives its id."""
        row = LiveRow(next(self.ids), request, length=len(request.tokens))
        self.waiting.append(row)
        return row.id

    def admit(self) -> None:
        """Let waiting rows join while there are places."""
        room = min(self.max_rows - len(self.rows), len(self.waiting))
        if room > 0:
            self.change(list(range(len(self.rows))), [self.waiting.popleft() for _ in range(room)])

    def drop(self, id: int) -> None:
        """Forget a row, waiting or running."""
        self.waiting = deque(row for row in self.waiting if row.id != id)
        stay = [i for i, row in enumerate(self.rows) if row.id != id]
        if len(stay) < len(self.rows):
            self.change(stay, [])

    def change(self, stay: list[int], new: list[LiveRow]) -> None:
        """Keep the rows at the places ``stay``, let ``new`` ones join, and lay everything out again."""
        device, before = self.model.device, self.buffered_ids()
        parts = [select(self.canvas, torch.tensor(stay, device=device))] if stay else []
        if new:
            parts.append(self.opened([row.request for row in new]))
        self.rows = [self.rows[i] for i in stay] + new
        requests = [row.request for row in self.rows]
        self.groups = regroup(self.groups, [row.id for row in self.rows], [r.strategy for r in requests], device)
        self.guests = invite(GUESTS, self.model, requests)
        if not self.rows:
            self.buffer = None
            return
        columns = max(row.length for row in self.rows) + 1
        self.canvas = trim(join(*parts) if len(parts) == 2 else parts[0], columns)
        self.settings = settings_of(requests, device, shift=self.model.spec.shift)
        self.fit_buffer(before)
        self.plan_next(self.canvas, torch.zeros_like(self.canvas.rules.ends))

    def opened(self, requests: list[Request]) -> Canvas:
        """A canvas of new rows with their first windows open."""
        fresh = new_canvas(requests, self.model.device)
        return advance(fresh.noted(begin_blocks(requests, fresh)), self.eos_ids)[0]

    def plan_next(self, canvas: Canvas, done: Tensor) -> RowFigures:
        """Plan the next query of the canvas after a step, and read what the host must know about it."""
        if canvas.columns != self.canvas.columns:
            self.canvas = canvas
            self.fit_buffer(self.buffered_ids())
        wishes = ask(self.guests, "plan", Wishes(canvas, self.buffer))
        canvas, plan = wishes.canvas, plan_query(wishes, self.settings, done, shift=self.model.spec.shift)
        figures = plan.figures
        for row, length in zip(self.rows, figures.length, strict=True):
            row.length = length
        columns = max(figures.length) + 1  # a canvas that may grow gets more columns than it fills
        self.canvas, self.plan = trim(canvas, columns), plan.trimmed(columns)
        return figures

    def report(self, figures: RowFigures) -> list[Event]:
        """Events of the step just taken; rows that are done leave."""
        events = events_of(self.rows, self.canvas, figures, self.model)
        ended = {event.id for event in events if event.done}
        if ended:
            self.change([i for i, row in enumerate(self.rows) if row.id not in ended], [])
        else:
            self.fit_buffer(self.buffered_ids())
        return events

    def call(self) -> ForwardCall:
        """What the next forward works on."""
        canvas, plan = self.canvas, self.plan
        call = ForwardCall(
            canvas=canvas,
            settings=self.settings,
            plan=plan,
            window=window_index(canvas, plan.width),
            observed=columns_where(plan.observed, plan.most_observed),
            buffer=self.buffer,
            plain=[i for i, row in enumerate(self.rows) if not row.request.cache.buffered],
            total=[row.length for row in self.rows],
            besides=plan.figures.extra,
        )
        return ask(self.guests, "prepare", call)

    def book(self, call: ForwardCall, tensors: StepTensors | None) -> None:
        """Add the step's cost to every row."""
        for i, row in enumerate(self.rows):
            row.book(self.cost(row, i, call.besides[i]), tensors, i)

    def cost(self, row: LiveRow, number: int, besides: int) -> StepCost:
        """What the forward just made cost one row; ``besides`` are the positions of guests."""
        plan, calls = self.plan, 2 if row.request.options.guidance else 1
        queried, earlier = plan.figures.queried[number], plan.figures.earlier[number]
        shaped = row.request.cache.buffered  # all rows of its call have one shape
        phase = "denoise" if queried > earlier else "seal" if row.forwards else "prefill"
        return StepCost(
            forwards=calls,
            positions=calls * queried + besides,
            padded=calls * (plan.most_queried - queried) if shaped else 0,
            full_forwards=calls * (queried == row.length),
            phase=phase,
            earlier=earlier,
        )

    def buffered_ids(self) -> list[int]:
        """Ids of the rows with a place in the K/V buffer, in its order."""
        return [row.id for row in self.rows if row.request.cache.buffered]

    def fit_buffer(self, before: list[int]) -> None:
        """A buffer with a place for each buffered row and a slot for each column; ``before`` are its rows so far."""
        now, slots = self.buffered_ids(), self.canvas.columns
        if now == before and (not now or (self.buffer is not None and self.buffer.slots == slots)):
            return
        self.buffer = move_buffer(self.model.net, self.buffer, before, now, slots)
        for row in self.rows:
            if self.buffer is not None and row.id in now:
                row.buffer_bytes = self.buffer.nbytes // len(now)


def move_buffer(
    net: Transformer, buffer: KVBuffer | None, before: Sequence[int], now: Sequence[int], slots: int
) -> KVBuffer | None:
    """A buffer for the rows ``now`` with K/V of those that were in it ``before`` (row ids); None without rows."""
    if not now:
        return None
    empty = KVBuffer.empty(net.shape, len(now), slots, net.embed.weight)
    kept = [(new, before.index(id)) for new, id in enumerate(now) if id in before]
    if buffer is not None and kept:
        width = min(slots, buffer.slots)
        new, old = (torch.tensor(part, device=buffer.keys.device) for part in zip(*kept, strict=True))
        for target, source in ((empty.keys, buffer.keys), (empty.values, buffer.values)):
            target[:, new, :, :width] = source[:, old, :, :width]
    return empty

"""The loop: query, forward, propose, observe, decide, enforce, apply, for rows that join and leave between steps.

One device-to-host copy a step: which rows are done, and how large the next step's tensors must be.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from starr.batch import Batch, ask_of, batch_of, kind_of
from starr.canvas import Canvas, apply, join, new_canvas, select, trim
from starr.decide import Group, decide, regroup
from starr.enforce import enforce
from starr.events import Event, Row, StepTensors, events_of
from starr.forward import Call, compute, grown, measure
from starr.grow import insert
from starr.model.transformer import KVBuffer
from starr.observe import Places, observe, places, postpone, remember, window_index, window_logits
from starr.plan import advance, move_end, observable, plan_query, settled_until, stop_after
from starr.propose import Ask, Proposals, propose
from starr.request import Request, check_request
from starr.stop import Moment, Verdict, judged, scoped
from starr.strategy.base import Action, Decision, StepView

if TYPE_CHECKING:
    from starr.model.load import Model


@dataclass(frozen=True, slots=True)
class Next:
    """What the coming step needs: positions (B, C), and their sizes on the host."""

    query: Tensor
    observed: Tensor
    query_counts: list[int]
    most_queried: int
    most_observed: int
    widths: list[int]
    opened: bool  # some row's window is new

    @property
    def width(self) -> int:
        return max(*self.widths, 1)


class Engine:
    """Decodes many requests together; a row gives the same tokens alone and in any company."""

    def __init__(self, model: Model, *, max_rows: int = 8) -> None:
        self.model, self.max_rows = model, max_rows
        self.eos_ids = torch.tensor(model.spec.eos_ids, device=model.device)
        self.waiting: deque[Row] = deque()
        self.rows: list[Row] = []
        self.groups: list[Group] = []
        self.ids = count()
        self.canvas: Canvas
        self.batch: Batch
        self.next: Next
        self.buffer: KVBuffer | None = None

    @property
    def busy(self) -> bool:
        return bool(self.rows or self.waiting)

    def add(self, request: Request) -> int:
        """Queue a request, checked; it joins before the next step that has room."""
        check_request(request, self.model)
        row = Row(next(self.ids), request, length=len(request.tokens))
        self.waiting.append(row)
        return row.id

    @torch.inference_mode()
    def cancel(self, id: int) -> None:
        """Forget a request, waiting or running."""
        self.waiting = deque(row for row in self.waiting if row.id != id)
        stay = [i for i, row in enumerate(self.rows) if row.id != id]
        if len(stay) < len(self.rows):
            self._rebuild(stay, [])

    @torch.inference_mode()
    def step(self) -> list[Event]:
        """One forward and one decision for every row; events of the rows that are streamed or done."""
        self._admit()
        if not self.rows:
            return []
        canvas, net, spec = self.canvas, self.model.net, self.model.spec
        window = window_index(canvas, self.next.width)
        observed = places(self.next.observed, self.next.most_observed)
        states = compute(net, spec, self._call(window, observed))
        ask = ask_of(self.batch, canvas, observed, spec, states.unguided)
        found = propose(net.head, states.observed, ask, spec.shape.vocab_size)
        found = self._eos_last(found, observed)
        canvas = remember(canvas, observed, found)
        if self.buffer is not None:
            canvas = replace(canvas, queried=canvas.queried | self.next.query)
        canvas = self._remember_shadow(canvas, window, states.shadow)
        view = observe(canvas, window, self.batch.signals, window_logits(canvas, window, observed, found))
        decision, action, verdict = self._decide(canvas, view)
        written = view.proposal if decision.tokens is None else decision.tokens
        after = apply(canvas, window, action, written, spec.mask_id)
        after = stop_after(self._grow(move_end(after, decision.end), decision), verdict)
        after, done = advance(after, (action != Action.KEEP).any(dim=1), self.eos_ids)
        self._count(self._kept(view, decision, action, window))
        return self._conclude(after, done if verdict is None else done | verdict.drop)

    def _decide(self, canvas: Canvas, view: StepView) -> tuple[Decision, Tensor, Verdict | None]:
        """The strategies' word, what is done, and what the stop rules say, if there are any."""
        first, last, rules = canvas.total == 0, canvas.total >= canvas.limit - 1, self.batch.rules
        if not rules:
            decision = decide(self.groups, view, first, self.next.opened)
            return decision, enforce(decision, view, literal=canvas.literal, last=last), None
        ended, ending = torch.isin(view.tokens, self.eos_ids) & view.held, torch.isin(view.proposal, self.eos_ids)
        moment = Moment(canvas.total, canvas.limit, canvas.window_start - canvas.start, ended, ending)
        narrow = scoped(rules, view, moment)
        decision = decide(self.groups, narrow, first, self.next.opened)
        action = enforce(decision, narrow, literal=canvas.literal, last=last)
        verdict = judged(rules, view, moment)
        return decision, torch.where(verdict.end[:, None], verdict.commit.to(action.dtype), action), verdict

    def _call(self, window: Tensor, observed: Places) -> Call:
        plain = sum(row.length for row in self.rows if kind_of(row.request) == "plain")
        total, plan = sum(row.length for row in self.rows), self.next
        return Call(self.canvas, self.batch, window, observed, plan.query, plan.most_queried, plain, total, self.buffer)

    def _eos_last(self, found: Proposals, observed: Places) -> Proposals:
        """Proposed ends of text wait, in the rows that want it so."""
        if self.batch.eos_last is None:
            return found
        rows = self.batch.eos_last[:, None].expand(observed.index.shape).reshape(-1)
        return postpone(found, torch.isin(found.token, self.eos_ids) & rows, self.model.spec.shape.vocab_size)

    def _remember_shadow(self, canvas: Canvas, window: Tensor, states: Tensor | None) -> Canvas:
        """The leave-one-out probability of every held token, for the rows whose strategy wants it."""
        if states is None:
            return canvas
        spec, rows = self.model.spec, self.batch.shadowed
        where = window.index_select(0, rows)
        held = canvas.tokens.index_select(0, rows).gather(1, where)
        own = propose(self.model.net.head, states, Ask(spec.mask_id, held.reshape(-1)), spec.shape.vocab_size).own
        return replace(canvas, shadow=canvas.shadow.index_put((rows[:, None], where), own.view(held.shape)))

    def _grow(self, canvas: Canvas, decision: Decision) -> Canvas:
        if decision.grow is None or decision.grow_at is None:
            return canvas
        most = max(row.request.strategy.grows for row in self.rows)
        at = canvas.window_start + decision.grow_at
        spec = self.model.spec
        return insert(canvas, at, decision.grow, most=most, longest=spec.max_length, mask_id=spec.mask_id)

    def _kept(self, view: StepView, decision: Decision, action: Tensor, window: Tensor) -> StepTensors | None:
        """The step's tensors, if any row is traced."""
        if not any(row.request.trace for row in self.rows):
            return None
        columns = {name: getattr(view, name) for name in ("tokens", "masked", "proposal", "best", "confidence")}
        columns |= {"queried": self.next.observed.gather(1, window).int(), "decided": decision.action, "action": action}
        optional = {"threshold": decision.threshold, "label": decision.label}
        columns |= {name: value for name, value in optional.items() if value is not None}
        return StepTensors(columns, view.width, self.canvas.window_start - self.canvas.start)

    def _count(self, kept: StepTensors | None) -> None:
        """Book the forward on every row."""
        now = perf_counter()
        for i, (row, positions) in enumerate(zip(self.rows, self.next.query_counts, strict=True)):
            calls = 2 if row.request.sampling.guidance else 1
            spent = calls * positions + self._measuring(row) + self._shadowing(row, self.next.widths[i])
            row.forwards += calls
            row.positions += spent
            row.padded += calls * (self.next.most_queried - positions) * (kind_of(row.request) != "plain")
            row.full_forwards += calls * (positions == row.length)
            if kept is not None and row.request.trace:
                row.history.append((kept, i, now - row.started, spent))

    def _measuring(self, row: Row) -> int:
        """What measuring costs, in positions: one layer over the canvas."""
        layers = self.model.spec.shape.layers
        return -(-(row.length - row.request.start) // layers) if row.request.cache.measures else 0

    def _shadowing(self, row: Row, width: int) -> int:
        """What a shadow block costs, in positions: one for each of the window's."""
        return width if "shadow" in row.request.strategy.signals else 0

    def _conclude(self, canvas: Canvas, done: Tensor) -> list[Event]:
        """Read what happened, plan the next step, and let finished rows leave."""
        self.canvas = canvas
        figures = self._plan(done)
        finished = [i for i, row in enumerate(figures) if row[0]]
        events = events_of(self.rows, canvas, [row[1] for row in figures], set(finished), self.model)
        if finished:
            self._rebuild([i for i in range(len(self.rows)) if i not in finished], [])
        else:
            self._fit_buffer()
        return events

    def _plan(self, done: Tensor) -> list[list[int]]:
        """The next step's query and sizes, with one copy to the host: (done, settled, ...) of every row."""
        canvas, shift = self._measured(), self.model.spec.shift
        query = plan_query(canvas, self.batch.caches, shift)
        wanted = canvas.in_window & (canvas.masked | (~canvas.frozen & self.batch.revokes[:, None]))
        observed = wanted & observable(query, shift)
        settled = settled_until(canvas, self.batch.revokes)
        width = canvas.window_end - canvas.window_start
        parts = [done, settled, canvas.length, query.sum(1), observed.sum(1), width, canvas.step == 0]
        figures: list[list[int]] = torch.stack([part.long() for part in parts], dim=1).tolist()
        _, _, lengths, queries, seen, widths, fresh = map(list, zip(*figures, strict=True))
        for row, length in zip(self.rows, lengths, strict=True):
            row.length = length
        columns = max(lengths) + 1  # a canvas that may grow gets more columns than it fills
        self.canvas = trim(canvas, columns)
        query, observed = query[:, :columns], observed[:, :columns]
        self.next = Next(query, observed, queries, max(queries), max(*seen, 1), widths, any(fresh))
        return figures

    def _measured(self) -> Canvas:
        """The canvas, with how far values moved where a cache wants to know."""
        if self.batch.measures:
            self._fit_buffer()
        if not self.batch.measures or self.buffer is None:
            return self.canvas
        most = max(row.length - row.request.start for row in self.rows)
        return measure(self.model.net, self.canvas, self.batch.buffered, most, self.buffer)

    def _admit(self) -> None:
        room = min(self.max_rows - len(self.rows), len(self.waiting))
        if room > 0:
            self._rebuild(list(range(len(self.rows))), [self.waiting.popleft() for _ in range(room)])

    def _rebuild(self, stay: list[int], new: list[Row]) -> None:
        """Let rows leave and join: every tensor of the batch is laid out anew."""
        device = self.model.device
        before = [row.id for row in self.rows if row.request.cache.buffered]
        parts = [select(self.canvas, torch.tensor(stay, device=device))] if stay else []
        if new:
            fresh = new_canvas([row.request for row in new], device)
            parts.append(advance(fresh, torch.ones_like(fresh.ends), self.eos_ids)[0])
        self.rows = [self.rows[i] for i in stay] + new
        requests = [row.request for row in self.rows]
        self.groups = regroup(self.groups, [r.id for r in self.rows], [r.strategy for r in requests], device)
        if not self.rows:
            self.buffer = None
            return
        self.canvas = trim(join(*parts) if len(parts) == 2 else parts[0], max(row.length for row in self.rows) + 1)
        self.batch = batch_of(requests, device)
        self._resize_buffer(before)
        self._plan(torch.zeros_like(self.canvas.ends))

    def _fit_buffer(self) -> None:
        """As many slots as columns, also when a row beside the buffered ones grew."""
        if self.buffer is not None and self.buffer.keys.shape[3] != self.canvas.columns:
            self._resize_buffer([row.id for row in self.rows if row.request.cache.buffered])

    def _resize_buffer(self, before: list[int]) -> None:
        now = [row for row in self.rows if row.request.cache.buffered]
        if not now:
            self.buffer = None
            return
        net, columns = self.model.net, self.canvas.columns
        empty = KVBuffer.empty(net.shape, len(now), columns, net.embed.weight)
        sources = [before.index(row.id) if row.id in before else None for row in now]
        self.buffer = grown(self.buffer, sources, columns, empty)
        for row in now:
            row.buffer_bytes = empty.nbytes // len(now)

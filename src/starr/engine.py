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

from starr import forward
from starr.batch import Batch, ask_of, batch_of
from starr.canvas import Canvas, apply, join, new_canvas, select
from starr.decide import Group, decide, regroup
from starr.enforce import enforce
from starr.events import Event, Final, Row, StepTensors, event_of, finish
from starr.model.transformer import KVBuffer
from starr.observe import Places, observe, places, remember, window_index
from starr.plan import advance, move_end, observable, plan_query, settled_until
from starr.propose import Proposals, propose
from starr.request import Request, check_request
from starr.strategy.base import Action, Decision, StepView

if TYPE_CHECKING:
    from starr.model.load import Model


@dataclass(frozen=True, slots=True)
class Next:
    """What the coming step needs: tensors (B, C) of positions, and their sizes on the host."""

    query: Tensor
    observed: Tensor
    query_counts: list[int]
    most_queried: int
    most_observed: int
    width: int
    opened: bool  # some row's window is new


class Engine:
    """Decodes many requests together; a row gives the same tokens alone and in any company."""

    def __init__(self, model: Model, *, max_rows: int = 8) -> None:
        self.model, self.max_rows = model, max_rows
        self.eos_ids = torch.tensor(model.spec.eos_ids, device=model.device)
        self.waiting: deque[Row] = deque()
        self.rows: list[Row] = []
        self.groups: list[Group] = []
        self.ids = count()

    @property
    def busy(self) -> bool:
        return bool(self.rows or self.waiting)

    def add(self, request: Request) -> int:
        """Queue a request, checked; it joins before the next step that has room."""
        check_request(request, self.model)
        row = Row(next(self.ids), request)
        self.waiting.append(row)
        return row.id

    def cancel(self, id: int) -> None:
        """Forget a request, waiting or running."""
        self.waiting = deque(row for row in self.waiting if row.id != id)
        stay = [i for i, row in enumerate(self.rows) if row.id != id]
        if len(stay) < len(self.rows):
            self._rebuild(stay, [])

    @torch.inference_mode()
    def step(self) -> list[Event]:
        """One forward and one decision for every row; events of rows that are streamed or done."""
        self._admit()
        if not self.rows:
            return []
        canvas, spec = self.canvas, self.model.spec
        index = window_index(canvas, self.next.width)
        observed = places(self.next.observed, self.next.most_observed)
        hidden, shadow, unguided = self._forward(canvas, index, observed)
        found = propose(
            self.model.net.head, hidden, ask_of(self.batch, canvas, observed, spec, unguided), spec.shape.vocab_size
        )
        canvas = remember(canvas, observed, found, self._eos_last(found, observed))
        canvas = self._remember_shadow(canvas, index, shadow)
        view = observe(canvas, index, self.batch.signals, self._logits(found, observed, canvas, index))
        decision = decide(self.groups, view, canvas.total == 0, self.next.opened)
        last = canvas.total >= canvas.limit - 1
        action = enforce(decision, view, literal=canvas.literal, last=last)
        written = view.proposal if decision.tokens is None else decision.tokens
        after = apply(canvas, index, action, written, spec.mask_id)
        after, done = advance(move_end(after, decision.end), (action != Action.KEEP).any(dim=1), self.eos_ids)
        return self._conclude(after, done, self._keep(canvas, view, decision, action, index))

    # The stages, in the order of ``step``.

    def _admit(self) -> None:
        room = self.max_rows - len(self.rows)
        new = [self.waiting.popleft() for _ in range(min(room, len(self.waiting)))]
        if new:
            self._rebuild(list(range(len(self.rows))), new)

    def _rebuild(self, stay: list[int], new: list[Row]) -> None:
        """Let rows leave and join: every tensor of the batch is laid out anew."""
        device = self.model.device
        old_buffered = [row.id for row in self.rows if row.request.cache.buffered]
        parts = []
        if stay:
            parts.append(select(self.canvas, torch.tensor(stay, device=device)))
        if new:
            fresh, _ = advance(
                new_canvas([r.request for r in new], device), torch.ones(len(new), dtype=torch.bool), self.eos_ids
            )
            parts.append(fresh)
        self.rows = [self.rows[i] for i in stay] + new
        self.groups = regroup(self.groups, [r.id for r in self.rows], [r.request.strategy for r in self.rows], device)
        if not self.rows:
            return
        self.canvas = join(*parts) if len(parts) == 2 else parts[0]
        self.canvas = trim(self.canvas, max(len(r.request.tokens) for r in self.rows) + 1)
        self.batch: Batch = batch_of([r.request for r in self.rows], device)
        self._resize_buffer(old_buffered)
        self._prepare(self.canvas)

    def _resize_buffer(self, before: list[int]) -> None:
        now = [row.id for row in self.rows if row.request.cache.buffered]
        if not now:
            self.buffer: KVBuffer | None = None
            return
        shape, like = self.model.net.shape, self.model.net.embed.weight
        empty = KVBuffer.empty(shape, len(now), self.canvas.columns, like)
        sources = [before.index(id) if id in before else None for id in now]
        self.buffer = forward.grown(getattr(self, "buffer", None), sources, self.canvas.columns, empty)
        for row in self.rows:
            row.buffer_bytes = empty.nbytes // len(now) if row.request.cache.buffered else 0

    def _prepare(self, canvas: Canvas) -> list[list[int]]:
        """Plan the next step's query and read all sizes in one copy."""
        return self._sync(canvas, torch.zeros_like(canvas.ends))

    def _sync(self, canvas: Canvas, done: Tensor) -> list[list[int]]:
        shift = self.model.spec.shift
        query = plan_query(canvas, self.batch.caches, shift)
        wanted = canvas.in_window & (canvas.masked | (~canvas.frozen & self.batch.revokes[:, None]))
        observed = wanted & observable(query, shift)
        width = canvas.window_end - canvas.window_start
        settled = settled_until(canvas, self.batch.revokes)
        figures = [done, query.sum(1), observed.sum(1), width, canvas.step == 0, settled, canvas.length]
        packet: list[list[int]] = torch.stack([f.long() for f in figures], dim=1).tolist()
        self.next = next_of(query, observed, packet)
        return packet

    def _forward(self, canvas: Canvas, index: Tensor, observed: Places) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Hidden states (B * O, D) of the observed positions, the shadow's (K * W, D), and unguided ones (B * O, D)."""
        net, spec, batch = self.model.net, self.model.spec, self.batch
        ragged = len({len(row.request.tokens) for row in self.rows}) > 1
        total = len(self.rows)
        shadow = None
        parts: list[tuple[Tensor, forward.Hidden]] = []
        if len(batch.plain):
            tokens, length = rows_of(batch.plain, total, canvas.tokens, canvas.length)
            parts.append((batch.plain, forward.whole(net, tokens, length, ragged)))
        if len(batch.buffered) and self.buffer is not None:
            tokens, length, query = rows_of(batch.buffered, total, canvas.tokens, canvas.length, self.next.query)
            where = places(query, self.next.most_queried)
            parts.append((batch.buffered, forward.queried(net, tokens, length, where, self.buffer)))
        if len(batch.shadowed):
            tokens, length, window = rows_of(batch.shadowed, total, canvas.tokens, canvas.length, index)
            found, behind = forward.shadowed(net, tokens, length, window, spec.mask_id)
            parts.append((batch.shadowed, found))
            shadow = behind.states.flatten(0, 1)
        states = gather_parts(parts, observed.index, spec.shift, total)
        unguided = None
        if batch.guided:
            blind = canvas.tokens.masked_fill(canvas.column_index < canvas.start[:, None], spec.mask_id)
            unguided = forward.whole(net, blind, canvas.length, ragged).at(observed.index, spec.shift).flatten(0, 1)
        return states.flatten(0, 1), shadow, unguided

    def _eos_last(self, found: Proposals, observed: Places) -> Tensor | None:
        if self.batch.eos_last is None:
            return None
        rows = self.batch.eos_last[:, None].expand(observed.index.shape).reshape(-1)
        return torch.isin(found.token, self.eos_ids) & rows

    def _remember_shadow(self, canvas: Canvas, index: Tensor, shadow: Tensor | None) -> Canvas:
        if shadow is None:
            return canvas
        spec, rows = self.model.spec, self.batch.shadowed
        window = index.index_select(0, rows)
        held = canvas.tokens.index_select(0, rows).gather(1, window)
        ask = replace(ask_of(self.batch, canvas, Places(index, canvas.length), spec, None), held=held.reshape(-1))
        plain = replace(ask, temperature=None, banned=None, guidance=None, signals=frozenset())
        own = propose(self.model.net.head, shadow, plain, spec.shape.vocab_size).own.view(held.shape)
        return replace(canvas, shadow=canvas.shadow.index_put((rows[:, None], window), own))

    def _logits(self, found: Proposals, observed: Places, canvas: Canvas, index: Tensor) -> Tensor | None:
        """(B, W, V) for strategies that want the distribution; zeros where nothing was observed."""
        if found.logits is None:
            return None
        rows, width = index.shape
        values = found.logits.view(rows, -1, found.logits.shape[1])
        place = observed.index - canvas.window_start[:, None]
        place = torch.where(observed.real, place, width)[..., None].expand_as(values)
        return values.new_zeros(rows, width + 1, values.shape[2]).scatter_(1, place, values)[:, :width]

    def _keep(
        self, canvas: Canvas, view: StepView, decision: Decision, action: Tensor, index: Tensor
    ) -> StepTensors | None:
        """The step's tensors, if any row is traced."""
        if not any(row.request.trace for row in self.rows):
            return None
        columns = {
            "queried": self.next.observed.gather(1, index).int(),
            "tokens": view.tokens,
            "masked": view.masked,
            "proposal": view.proposal,
            "best": view.best,
            "confidence": view.confidence,
            "decided": decision.action,
            "action": action,
        }
        optional = {"threshold": decision.threshold, "label": decision.label}
        columns |= {name: value for name, value in optional.items() if value is not None}
        return StepTensors(columns, view.width, canvas.window_start - canvas.start)

    def _conclude(self, canvas: Canvas, done: Tensor, kept: StepTensors | None) -> list[Event]:
        """Count, sync, and let finished rows leave."""
        positions, most, full = (
            self.next.query_counts,
            self.next.most_queried,
            [len(r.request.tokens) for r in self.rows],
        )
        now = perf_counter()
        guided = 1 + self.batch.guided
        for i, row in enumerate(self.rows):
            row.forwards += guided
            row.positions += positions[i] * guided
            row.padded += (most - positions[i]) * guided
            row.full_forwards += (positions[i] == full[i]) * guided
            if kept is not None and row.request.trace:
                row.history.append((kept, i, now - row.started, positions[i]))
        packet = self._sync(canvas, done)
        self.canvas = canvas
        finished = [i for i, figures in enumerate(packet) if figures[0]]
        events = self._events(canvas, packet, finished)
        if finished:
            self._rebuild([i for i in range(len(self.rows)) if i not in finished], [])
        return events

    def _events(self, canvas: Canvas, packet: list[list[int]], finished: list[int]) -> list[Event]:
        watched = [i for i, row in enumerate(self.rows) if row.request.stream or i in finished]
        if not watched:
            return []
        chosen = select(canvas, torch.tensor(watched, device=canvas.tokens.device))
        counts = torch.stack([chosen.commits, chosen.revocations, chosen.revisions], dim=1).tolist()
        tokens, masked = chosen.tokens.tolist(), chosen.masked.tolist()
        at, with_ = chosen.committed_at.tolist(), chosen.committed_with.tolist()
        events = []
        for k, i in enumerate(watched):
            row = self.rows[i]
            part = slice(row.request.start, packet[i][6])
            if i not in finished:
                settled = packet[i][5] - row.request.start
                event = event_of(row, self.model, tokens[k][part], masked[k][part], settled)
                events.append(replace(event, commits=counts[k][0], revocations=counts[k][1]))
                continue
            final = Final(tokens[k][part], masked[k][part], at[k][part], with_[k][part], tuple(counts[k]))
            result = finish(row, final, self.model)
            length = len(final.tokens)
            events.append(
                Event(
                    row.id,
                    result.text,
                    True,
                    final.tokens,
                    final.masked,
                    length,
                    row,
                    self.model,
                    *counts[k][:2],
                    result,
                )
            )
        return events


def trim(canvas: Canvas, columns: int) -> Canvas:
    """Drop columns that no row reaches any more."""
    if canvas.columns == columns:
        return canvas
    names = [n for n in Canvas.__dataclass_fields__ if getattr(canvas, n).dim() == 2]
    return replace(canvas, **{n: getattr(canvas, n)[:, :columns] for n in names})


def next_of(query: Tensor, observed: Tensor, packet: list[list[int]]) -> Next:
    done, counts, seen, widths, fresh, _, _ = zip(*packet, strict=True)
    del done
    return Next(query, observed, list(counts), max(counts), max(max(seen), 1), max(max(widths), 1), any(fresh))


def rows_of(rows: Tensor, total: int, *tensors: Tensor) -> tuple[Tensor, ...]:
    """The given rows of each tensor; all of them is a no-op."""
    return tensors if len(rows) == total else tuple(t.index_select(0, rows) for t in tensors)


def gather_parts(parts: list[tuple[Tensor, forward.Hidden]], columns: Tensor, shift: bool, total: int) -> Tensor:
    """(B, O, D) from the calls that each served some rows."""
    if len(parts) == 1:
        return parts[0][1].at(columns, shift)
    pieces = [hidden.at(columns.index_select(0, rows), shift) for rows, hidden in parts]
    whole = pieces[0].new_zeros(total, *pieces[0].shape[1:])
    for (rows, _), piece in zip(parts, pieces, strict=True):
        whole[rows] = piece
    return whole

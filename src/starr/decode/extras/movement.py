"""How far values have moved since the buffer got them, for caches that choose by it (adaptive, dLLM-Cache)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from starr.decode.canvas import columns_where
from starr.decode.confidence import on_grid
from starr.decode.extras.base import Guest
from starr.decode.forward import ForwardCall, columns_of, rows_of
from starr.decode.query import Wishes
from starr.decode.request import Request
from starr.model.load import Model

MOVED = "moved"  # (B, C) float32


class Movement(Guest):
    """Fills the note ``moved`` before every query: one layer over the canvas.

    All rows that have a buffer go through that layer, because one buffer holds them all. Rows of other caches have only
    the spare column there: their K/V stay as their own forwards wrote them.
    """

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        super().__init__(model, requests, rows)
        buffered = [i for i, request in enumerate(requests) if request.cache.buffered]
        self.buffered = torch.tensor(buffered, dtype=torch.int64, device=model.device)
        self.own = torch.tensor([[requests[i].cache.measures] for i in buffered], device=model.device)

    @classmethod
    def serves(cls, request: Request) -> bool:
        return request.cache.measures

    def plan(self, wishes: Wishes) -> Wishes:
        canvas, buffer = wishes.canvas, wishes.buffer
        last = canvas.notes.get(MOVED, torch.zeros_like(canvas.last.confidence))
        if buffer is None:
            return replace(wishes, canvas=canvas.noted({MOVED: last}))
        tokens, length, start = rows_of(self.buffered, canvas.tokens, canvas.length, canvas.rules.start)
        index = columns_of(tokens)
        attend = index < length[:, None]
        most = max(request.length for request in self.requests)
        where = columns_where(attend & (index >= start[:, None]) & self.own, most).index
        moved = self.model.net.moved(tokens.gather(1, where), where, attend, buffer)
        note = last.index_put((self.buffered[:, None], where), on_grid(moved.float()))
        return replace(wishes, canvas=canvas.noted({MOVED: note}))

    def prepare(self, call: ForwardCall) -> ForwardCall:
        """Count one layer over the canvas, as a share of a position each."""
        starts = zip(self.order, self.requests, strict=True)
        layers = self.model.spec.shape.layers
        return call.cost_more({row: -(-(call.total[row] - r.start) // layers) for row, r in starts})

"""A shadow block of masks after the row, in the same forward (wino, arXiv:2507.18578).

The paper has it for models that predict a position in place, see ``extras.queries``. Letters: B rows, C columns, X
extra queries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import torch

from starr.decode.canvas import Canvas
from starr.decode.extras.base import Guest
from starr.decode.extras.queries import hide_own, read_held
from starr.decode.forward import ForwardCall, Seen
from starr.decode.query import Wishes
from starr.decode.request import Request
from starr.errors import InputError

SHADOW = "shadow"  # (B, C) float32, and the signal's name


class Shadow(Guest):
    """Signal ``shadow``: the leave-one-out probability of every held token of the window."""

    name: ClassVar[str] = SHADOW
    queries: ClassVar[bool] = True

    @classmethod
    def check(cls, request: Request) -> None:
        if request.cache.buffered:
            request.refuse_cache(f"{request.strategy.name} needs its shadow block in a whole forward")
        if request.options.smoothing > 0:
            rule = f"{request.strategy.name} cannot be used with smoothing: its shadow block is of plain masks."
            raise InputError(rule, hint="Use smoothing 0.", param="strategy")

    def plan(self, wishes: Wishes) -> Wishes:
        canvas = wishes.canvas
        mine = torch.zeros_like(canvas.masked[:, :1]).index_fill(0, self.rows, True)
        return wishes.add(extra=canvas.in_window & mine)

    def prepare(self, call: ForwardCall) -> ForwardCall:
        return replace(call, extra=hide_own(call, self.model))

    def observe(self, canvas: Canvas, seen: Seen) -> Canvas:
        extra, states = seen.call.extra, seen.states.extra
        if extra is None or states is None:
            return canvas
        own = read_held(self.model, canvas, extra, states).own.view_as(extra.tokens)
        last = canvas.notes.get(SHADOW, torch.zeros_like(canvas.last.confidence))
        return canvas.noted({SHADOW: last.scatter(1, extra.columns.index, own)})

"""Shadows of a whole window, each of which sees all others (wino, arXiv:2507.18578)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.canvas import Canvas
from starr.decode.extras.queries import OWN, ShadowReader
from starr.decode.request import Request
from starr.errors import InputError


class Shadow(ShadowReader):
    """Signal ``shadow``: the leave-one-out probability of every held token of the window.

    Where logits are in place masks have a shadow, too, as in the public code. Elsewhere shadows see each other not.
    """

    name: ClassVar[str] = OWN

    @classmethod
    def check(cls, request: Request) -> None:
        if request.cache.buffered:
            request.refuse_cache(f"{request.strategy.name} needs its shadow block in a whole forward")
        if request.options.smoothing > 0:
            rule = f"{request.strategy.name} cannot be used with smoothing: its shadow block is of plain masks."
            raise InputError(rule, hint="Use smoothing 0.", param="strategy")

    def asks(self, canvas: Canvas) -> Tensor:
        mine = torch.zeros_like(canvas.masked[:, :1]).index_fill(0, self.rows, True)
        block = canvas.in_window & mine
        return block & ~(canvas.masked | canvas.frozen) if self.model.spec.shift else block

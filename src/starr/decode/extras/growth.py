"""A canvas that grows: what is inserted after a position moves everything to its right (DAEDAL, arXiv:2508.00819)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from starr.decode.canvas import Canvas, each
from starr.decode.extras.base import Guest
from starr.decode.request import Request
from starr.decode.view import Decision
from starr.errors import InputError

ROOM = "room"  # (B, C) int64, and the signal's name


class Growth(Guest):
    """Rows whose strategy asks for room: ``Decision.extras`` has ``grow`` (B,), how many, and ``grow_at`` (B,).

    ``grow_token`` (B,), if given, is the token that comes there; -1 is a mask. Nothing grows in the last step of a row.

    Signal ``room``: how many positions the model's context has left, the same at every position of a row. A step that
    grows the canvas need not commit: the context bounds how often that happens.
    """

    @classmethod
    def serves(cls, request: Request) -> bool:
        return request.strategy.grows() > 0

    @classmethod
    def check(cls, request: Request) -> None:
        if not all(request.masked[request.start :]):
            raise InputError(f"{request.strategy.name} cannot be used: it moves frozen text.", param="strategy")
        if request.cache.buffered:
            request.refuse_cache(f"{request.strategy.name} moves positions")

    @classmethod
    def begin(cls, requests: Sequence[Request], canvas: Canvas) -> Mapping[str, Tensor]:
        return {ROOM: torch.zeros_like(canvas.tokens)}

    def observe(self, canvas: Canvas, window: Tensor, states: Tensor | None) -> Canvas:
        left = self.model.spec.max_length - canvas.length
        return canvas.noted({ROOM: left[:, None].expand_as(canvas.tokens)})

    def frees(self, decision: Decision) -> Tensor | None:
        return decision.extras["grow"] > 0 if "grow" in decision.extras else None

    def apply(self, canvas: Canvas, decision: Decision) -> Canvas:
        if "grow" not in decision.extras:
            return canvas
        most = max(request.strategy.grows() for request in self.requests)
        at = canvas.window_start + decision.extras["grow_at"]
        spec, count = self.model.spec, decision.extras["grow"]
        token = decision.extras.get("grow_token", torch.full_like(count, -1))
        token = torch.where(token < 0, spec.mask_id, token)
        given = torch.tensor(
            [request.options.max_forwards is not None for request in self.requests], device=count.device
        )
        fixed = torch.zeros_like(count, dtype=torch.bool).index_copy(0, self.rows, given)
        count = count.masked_fill(fixed & (canvas.total >= canvas.limit), 0)
        grown = insert(canvas, at, count, token, most=most, longest=spec.max_length, mask_id=spec.mask_id)
        return replace(grown, limit=torch.where(fixed, canvas.limit, grown.limit))


def insert(
    canvas: Canvas, at: Tensor, count: Tensor, token: Tensor, *, most: int, longest: int, mask_id: int
) -> Canvas:
    """Insert ``token`` (B,) ``count`` (B,) times after column ``at`` (B,), at most ``most``, within ``longest``.

    Masks are masked, other tokens held with confidence 1. The window's end moves along only where it was the canvas's
    end. Every inserted position, and the step that inserted it, raises the row's limit of steps by one.
    """
    count = count.clamp(min=0, max=most).minimum(longest - canvas.length)
    columns = max(canvas.columns, min(canvas.columns + most, longest + 1))  # the last one stays spare
    column = torch.arange(columns, device=at.device)[None]
    behind = column > at[:, None]
    new = behind & (column <= (at + count)[:, None])
    source = torch.where(behind & ~new, column - count[:, None], column)
    source = torch.where(new, canvas.columns - 1, source).clamp(max=canvas.columns - 1)

    def shifted(tensor: Tensor, name: str) -> Tensor:
        place = source.reshape(*source.shape, *[1] * (tensor.dim() - 2))
        return tensor if tensor.dim() == 1 else tensor.take_along_dim(place, dim=1)

    moved = each(canvas, shifted)
    at_end = canvas.window_end == canvas.length
    return replace(
        moved,
        tokens=torch.where(new, token[:, None], moved.tokens),
        masked=moved.masked | (new & (token == mask_id)[:, None]),
        committed_at=torch.where(new, canvas.total[:, None] - 1, moved.committed_at),
        committed_with=moved.committed_with.masked_fill(new, 1.0),
        frozen=moved.frozen & ~new,
        length=canvas.length + count,
        goal=canvas.goal + count,
        window_end=torch.where(at_end, canvas.window_end + count, canvas.window_end),
        limit=canvas.limit + count + (count > 0),
    )

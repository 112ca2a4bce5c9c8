"""A canvas that grows: what is inserted after a position moves everything to its right (DAEDAL, arXiv:2508.00819)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.canvas import Canvas, each
from starr.decode.enforce import Step, permit
from starr.decode.extras.base import Guest
from starr.decode.forward import Seen
from starr.decode.request import Request
from starr.errors import InputError

ROOM = "room"  # (B, C) int64, and the signal's name


class Growth(Guest):
    """Rows whose strategy asks for room: ``Decision.extras`` has ``grow`` (B,), how many, and ``grow_at`` (B,).

    ``grow_token`` (B,), if given, is the token that comes there; -1 is a mask. Nothing grows in the last step of a row.

    Signal ``room``: how many positions the model's context has left, the same at every position of a row. A step that
    grows the canvas need not commit: the context bounds how often that happens.
    """

    name: ClassVar[str] = "growth"

    @classmethod
    def check(cls, request: Request) -> None:
        if not all(request.masked[request.start :]):
            raise InputError(f"{request.strategy.name} cannot be used: it moves frozen text.", param="strategy")
        if request.cache.buffered:
            request.refuse_cache(f"{request.strategy.name} moves positions")

    def observe(self, canvas: Canvas, seen: Seen) -> Canvas:
        left = self.model.spec.max_length - canvas.length
        return canvas.noted({ROOM: left[:, None].expand_as(canvas.tokens)})

    def amend(self, step: Step) -> Step:
        """A step that grows the canvas does what was decided, without the commit that ``enforce`` adds."""
        if "grow" not in step.decision.extras:
            return step
        grows = (step.decision.extras["grow"] > 0) & ~step.last
        grows = grows if step.verdict is None else grows & ~step.verdict.end
        return replace(step, action=torch.where(grows[:, None], permit(step.decision.action, step.scoped), step.action))

    def apply(self, canvas: Canvas, step: Step) -> Canvas:
        asked = step.decision.extras
        if "grow" not in asked:
            return canvas
        most = max(int(request.strategy.needs()[self.name]) for request in self.requests)
        at = canvas.window.start + asked["grow_at"]
        spec, count = self.model.spec, asked["grow"]
        token = asked.get("grow_token", torch.full_like(count, -1))
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
        index = source.reshape(*source.shape, *[1] * (tensor.dim() - 2))
        return tensor if tensor.dim() == 1 else tensor.take_along_dim(index, dim=1)

    moved = each(canvas, shifted)
    last = canvas.window.end
    done = replace(
        moved.done,
        committed_at=torch.where(new, canvas.total[:, None] - 1, moved.done.committed_at),
        committed_with=moved.done.committed_with.masked_fill(new, 1.0),
    )
    return replace(
        moved,
        tokens=torch.where(new, token[:, None], moved.tokens),
        masked=moved.masked | (new & (token == mask_id)[:, None]),
        frozen=moved.frozen & ~new,
        length=canvas.length + count,
        goal=canvas.goal + count,
        window=replace(moved.window, end=torch.where(last == canvas.length, last + count, last)),
        done=done,
        limit=canvas.limit + count + (count > 0),
    )

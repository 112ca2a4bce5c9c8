"""The one builder of extra queries: shadows, which read the place of a token without seeing the token.

The state of a shadow gives the *leave-one-out* distribution: what the model predicts there from the rest of the row. A
shadow stands in for the position whose state predicts the token, and the token itself is a mask to it.

    logits in place       one query: a mask at j. It does not see column j.
    logits shifted        two queries: a copy of token j - 1 at its place, whose state predicts j, and a mask at j. They
                          see each other and neither of the columns j - 1 and j.

The row does not see its shadows, so its own states are those of a forward without them; in a forward with a cache they
query the K/V buffer and leave nothing there. What other positions have read of the token still reaches a shadow through
them, from the second layer on: the distribution is exact for one layer, and close for more. Letters: B rows, C columns
(the last one spare), S columns with a shadow, X = S or 2 S extra queries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from starr.decode.canvas import Canvas, columns_where
from starr.decode.extras.base import Guest
from starr.decode.forward import ExtraQueries, ForwardCall, Seen
from starr.decode.query import Wishes

if TYPE_CHECKING:
    from starr.model.spec import ModelSpec

OWN, BEST = "shadow", "shadow.best"  # notes (B, C) float32: of the held token, and of the likeliest one there


class ShadowReader(Guest):
    """Notes the leave-one-out probabilities of the columns that it ``asks`` for, step by step."""

    queries: ClassVar[bool] = True

    def asks(self, canvas: Canvas) -> Tensor:
        """(B, C) bool: the columns that get a shadow in the next forward."""
        raise NotImplementedError

    def plan(self, wishes: Wishes) -> Wishes:
        return wishes.add(extra=self.asks(wishes.canvas))

    def prepare(self, call: ForwardCall) -> ForwardCall:
        if call.extra is not None or not max(call.plan.figures.extra):
            return call
        shadows = build_shadows(call, self.model.spec)
        counts = zip(call.besides, call.plan.figures.extra, strict=True)
        more = [cost + (shadows.each - 1) * count for cost, count in counts]  # the plan has counted the first ones
        return replace(call, extra=shadows, besides=more)

    def observe(self, canvas: Canvas, seen: Seen) -> Canvas:
        """What no shadow read has 0, and -1 as its best."""
        own, best = torch.zeros_like(canvas.last.confidence), torch.full_like(canvas.last.confidence, -1.0)
        extra, found = seen.call.extra, seen.left_out
        if extra is not None and found is not None:
            where = extra.columns.index
            own = own.scatter(1, where, found.own.view(where.shape))
            best = best.scatter(1, where, found.best.view(where.shape))
        return canvas.noted({OWN: own, BEST: best})


def build_shadows(call: ForwardCall, spec: ModelSpec) -> ExtraQueries:
    """Shadows of the columns that the plan has some for. Those of a row that is a ``crowd`` see each other."""
    canvas, crowd = call.canvas, call.settings.crowd
    assert call.plan.extra is not None
    columns = columns_where(call.plan.extra, max(call.plan.figures.extra))
    at, own = canvas.column_index[:, None], columns.index[..., None]
    masks = torch.full_like(columns.index, spec.mask_id)
    same = torch.eye(masks.shape[1], dtype=torch.bool, device=masks.device).expand(len(masks), -1, -1)
    sees = canvas.valid[:, None] & (at != own)
    if not spec.shift:
        among = same if crowd is None else same | (crowd[:, None, None] & columns.real[:, None])
        return ExtraQueries(columns, masks, columns.index, sees, among)
    before = (columns.index - 1).clamp(min=0)
    return ExtraQueries(
        columns=columns,
        tokens=torch.cat([canvas.tokens.gather(1, before), masks], dim=1),
        position=torch.cat([before, columns.index], dim=1),
        sees=(sees & (at != own - 1)).repeat(1, 2, 1),
        among=same.repeat(1, 2, 2),
    )

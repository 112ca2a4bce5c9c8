"""The one builder of extra queries: states of a position that does not see its own token.

An extra query about column j stands where column j is predicted and holds a mask. It sees every column of its row but
j, and the row's other extra queries; nobody else sees it. So its state predicts column j from everything else: the
leave-one-out distribution, exact in one layer (in more, other positions have seen column j). In a forward with a cache
it queries the K/V buffer in the same way and leaves nothing there. Where logits are shifted (Dream), column j is
predicted at j - 1.

Letters: B rows, C columns (the last one spare), X extra queries, D width, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from starr.decode.canvas import Canvas, columns_where
from starr.decode.forward import ExtraQueries, ForwardCall, predictors
from starr.decode.propose import ProposalRequest, Proposals, propose

if TYPE_CHECKING:
    from starr.model.load import Model


def hide_own(call: ForwardCall, model: Model) -> ExtraQueries | None:
    """Extra queries for the columns that the plan has some for; None where there are none."""
    most = max(call.plan.figures.extra)
    if call.plan.extra is None or not most:
        return None
    canvas, spec = call.canvas, model.spec
    columns = columns_where(call.plan.extra, most)
    at, real = canvas.column_index[:, None], columns.real
    sees = canvas.valid[:, None] & (at != columns.index[..., None])
    return ExtraQueries(
        columns=columns,
        tokens=torch.full_like(columns.index, spec.mask_id),
        position=predictors(columns.index, spec.shift),
        sees=sees,
        among=real[:, None].expand(-1, most, -1),
    )


def read_held(model: Model, canvas: Canvas, extra: ExtraQueries, states: Tensor) -> Proposals:
    """What the states (B, X, D) say about the tokens that are held at the extra queries' columns, N = B * X rows."""
    held = canvas.tokens.gather(1, extra.columns.index)
    asked = ProposalRequest(model.spec.mask_id, held.reshape(-1))
    return propose(model.net.head, states.flatten(0, 1), asked, model.spec.shape.vocab_size)

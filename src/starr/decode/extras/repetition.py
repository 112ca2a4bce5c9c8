"""A penalty on the token to the left, against repeated tokens (edit, SGLang's joint threshold)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from starr.decode.extras.base import Guest
from starr.decode.forward import ForwardCall
from starr.decode.propose import ProposalRequest
from starr.decode.request import Request

if TYPE_CHECKING:
    from starr.model.load import Model


class Repetition(Guest):
    """Subtracts a penalty from the logit of the token to the left; a mask there has none.

    As in SGLang a block's first position has no token to its left.
    """

    name: ClassVar[str] = "repetition"

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        super().__init__(model, requests, rows)
        penalties = [float(r.strategy.needs().get(self.name, 0)) for r in requests]
        self.penalty = torch.tensor(penalties, device=model.device)

    def propose(self, request: ProposalRequest, call: ForwardCall) -> ProposalRequest:
        canvas, at = call.canvas, call.observed.index
        left = canvas.tokens.gather(1, (at - 1).clamp(min=0))
        first = (at - canvas.rules.origin[:, None]) % canvas.rules.block[:, None] == 0
        penalty = self.penalty[:, None].expand_as(left).masked_fill(first, 0.0)
        flat = left.reshape(-1, 1), penalty.reshape(-1, 1)

        def subtract(logits: Tensor, part: slice) -> None:
            logits.scatter_add_(1, flat[0][part], -flat[1][part])

        return replace(request, edits=(*request.edits, subtract))

"""A penalty on the token to the left, against repeated tokens (edit, SGLang's joint threshold)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from starr.decode.canvas import Canvas, Places
from starr.decode.extras.base import Guest
from starr.decode.propose import ProposalRequest
from starr.decode.request import Request
from starr.model.load import Model


class Repetition(Guest):
    """Subtracts ``Strategy.penalises`` from the logit of the token to the left; a mask there has none.

    As in SGLang a block's first position has no token to its left.
    """

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        super().__init__(model, requests, rows)
        self.penalty = torch.tensor([r.strategy.penalises() for r in requests], device=model.device)

    @classmethod
    def serves(cls, request: Request) -> bool:
        return request.strategy.penalises() > 0

    def propose(self, request: ProposalRequest, canvas: Canvas, observed: Places) -> ProposalRequest:
        left = canvas.tokens.gather(1, (observed.index - 1).clamp(min=0))
        first = (observed.index - canvas.origin[:, None]) % canvas.block[:, None] == 0
        penalty = self.penalty[:, None].expand_as(left).masked_fill(first, 0.0)
        return replace(request, left=left.reshape(-1), penalty=penalty.reshape(-1))

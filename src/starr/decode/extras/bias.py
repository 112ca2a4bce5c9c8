"""Numbers that are added to the logits of some tokens (the option ``logit_bias``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from starr.decode.extras.base import Guest
from starr.decode.forward import ForwardCall
from starr.decode.propose import ProposalRequest
from starr.decode.request import Request
from starr.errors import InputError

if TYPE_CHECKING:
    from starr.model.load import Model

MOST = 100.0  # as OpenAI: -100 rules a token out, 100 rules all others out


class Bias(Guest):
    """Adds each row's numbers to its logits, at every position; proposals and confidences follow them."""

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        super().__init__(model, requests, rows)
        self.added = torch.zeros(len(requests), model.spec.shape.vocab_size, device=model.device)
        for row, request in zip(rows, self.requests, strict=True):
            given = dict(request.options.logit_bias or {})
            tokens = torch.tensor(list(given), dtype=torch.int64, device=model.device)
            self.added[row, tokens] = torch.tensor(list(given.values()), dtype=torch.float32, device=model.device)

    @classmethod
    def serves(cls, request: Request) -> bool:
        return bool(request.options.logit_bias)

    def propose(self, request: ProposalRequest, call: ForwardCall) -> ProposalRequest:
        rows, most = call.observed.index.shape
        row_of = torch.arange(rows, device=self.added.device).repeat_interleave(most)

        def add(logits: Tensor, part: slice) -> None:
            logits.add_(self.added.index_select(0, row_of[part]))

        return replace(request, edits=(*request.edits, add))


def read_bias(given: Any, size: int) -> dict[int, float]:
    """Read token ids within a vocabulary of this size, and their numbers: a mapping, or one as JSON text."""
    try:
        given = json.loads(given) if isinstance(given, str) else given
        found = {int(token): float(number) for token, number in given.items()} if isinstance(given, Mapping) else None
    except (TypeError, ValueError, RecursionError):
        found = None
    if found is None or not all(token >= 0 and -MOST <= number <= MOST for token, number in found.items()):
        rule = f"logit_bias must give token ids numbers within [-{MOST:.0f}, {MOST:.0f}]."
        raise InputError(rule, param="logit_bias")
    wrong = [token for token in found if token >= size]
    if wrong:
        raise InputError(f"logit_bias: token ids must be within [0, {size - 1}], got {wrong[0]}.", param="logit_bias")
    return found

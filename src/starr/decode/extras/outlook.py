"""Positions outside the window that a stop rule wants to see, for rules about the whole canvas (Prophet)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from starr.decode.extras.base import Guest
from starr.decode.query import Wishes
from starr.decode.request import Request

if TYPE_CHECKING:
    from starr.model.load import Model

PLANNED = "planned"  # (B,) int64


class Outlook(Guest):
    """What a stop rule ``watches`` is observed in every step, wherever the window is.

    Note ``planned``: the steps that the row would take without revocations, max_forwards or one for each mask.
    """

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        super().__init__(model, requests, rows)
        planned = [r.step_limit if r.options.max_forwards else sum(r.masked) for r in requests]
        self.planned = torch.tensor(planned, device=model.device)
        watched = [(row, span) for row, r in enumerate(requests) for rule in r.rules if len(span := rule.watches(r))]
        self.watched = [(row, slice(span.start, span.stop)) for row, span in watched]

    @classmethod
    def serves(cls, request: Request) -> bool:
        return any(len(rule.watches(request)) for rule in request.rules)

    def plan(self, wishes: Wishes) -> Wishes:
        canvas = wishes.canvas.noted({PLANNED: self.planned})
        watched = torch.zeros_like(canvas.masked)
        for row, span in self.watched:
            watched[row, span] = True
        return replace(wishes, canvas=canvas).add(observed=watched & ~canvas.frozen)

"""A whole forward before a stop rule ends a row that has a cache (ICE): old K/V make an answer look sure too soon.

Letters: B rows, C columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from starr.decode.extras.base import Guest
from starr.decode.query import Wishes
from starr.decode.request import Request
from starr.decode.stops.base import Ruled, StopRule
from starr.model.load import Model


class SecondLook(Guest):
    """The next forward of a row that a rule ``nears`` to end computes every position, as it does without a cache."""

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        super().__init__(model, requests, rows)
        self.eos_ids = torch.tensor(model.spec.eos_ids, device=model.device)
        self.rules: list[Ruled] = [
            (rule, torch.tensor([rule in request.rules for request in requests], device=model.device))
            for rule in looking(self.requests)
        ]

    @classmethod
    def serves(cls, request: Request) -> bool:
        return request.cache.buffered and bool(looking([request]))

    def plan(self, wishes: Wishes) -> Wishes:
        canvas = wishes.canvas
        for rule, rows in self.rules:
            near = rule.nears(canvas, self.eos_ids) & rows
            wishes = wishes.add(query=near[:, None] & canvas.valid)
        return wishes


def looking(requests: Sequence[Request]) -> list[StopRule]:
    """The requests' rules that ask for a second look, each once."""
    return list(dict.fromkeys(rule for request in requests for rule in request.rules if rule.looks_again()))

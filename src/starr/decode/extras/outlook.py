"""Positions outside the window that a stop rule wants to see, for rules about the whole canvas (Prophet)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from starr.decode.canvas import Canvas
from starr.decode.extras.base import Guest
from starr.decode.request import Request

WATCHED, PLANNED = "watched", "planned"  # (B, C) bool and (B,) int64


class Outlook(Guest):
    """What a stop rule ``watches`` is observed in every step, wherever the window is.

    Note ``planned``: the steps that the row would take without revocations, max_forwards or one for each mask.
    """

    @classmethod
    def serves(cls, request: Request) -> bool:
        return any(len(rule.watches(request)) for rule in request.rules)

    @classmethod
    def begin(cls, requests: Sequence[Request], canvas: Canvas) -> Mapping[str, Tensor]:
        places = range(canvas.columns)
        watched = [[any(at in rule.watches(r) for rule in r.rules) for at in places] for r in requests]
        planned = [r.step_limit if r.options.max_forwards else sum(r.masked) for r in requests]
        device = canvas.step.device
        return {WATCHED: torch.tensor(watched, device=device), PLANNED: torch.tensor(planned, device=device)}

    def observes(self, canvas: Canvas, wanted: Tensor) -> Tensor:
        return wanted | (canvas.notes[WATCHED] & ~canvas.frozen)

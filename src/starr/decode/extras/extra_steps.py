"""Steps after the last mask of a window is gone, for strategies that revise what they wrote (edit, LLaDA2.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from starr.decode.canvas import Canvas
from starr.decode.extras.base import Guest
from starr.decode.request import Request

ALLOWED, USED = "extra_allowed", "extra_used"  # (B,) int64 both


class ExtraSteps(Guest):
    """A window without masks stays open for ``Strategy.extra_steps`` steps, or until one of them changes nothing."""

    @classmethod
    def serves(cls, request: Request) -> bool:
        return request.strategy.extra_steps > 0

    @classmethod
    def begin(cls, requests: Sequence[Request], canvas: Canvas) -> Mapping[str, Tensor]:
        allowed = [request.strategy.extra_steps for request in requests]
        return {ALLOWED: torch.tensor(allowed, device=canvas.step.device), USED: torch.zeros_like(canvas.step)}

    def keeps_open(self, canvas: Canvas, acted: Tensor) -> tuple[Canvas, Tensor | None]:
        used = canvas.notes[USED]
        spent = (used >= canvas.notes[ALLOWED]) | ((used > 0) & ~acted) | (canvas.total >= canvas.limit)
        full = ~(canvas.masked & canvas.in_window).any(dim=1)
        # Only a window that closes gives them back: one whose tokens are revoked does not get them anew.
        used = torch.where(spent & full, 0, used + (full & ~spent))
        return canvas.noted({USED: used}), ~spent

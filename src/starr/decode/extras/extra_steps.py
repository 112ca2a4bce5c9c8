"""Steps after the last mask of a window is gone, for strategies that revise what they wrote (edit, LLaDA2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch

from starr.decode.advance import stop_after
from starr.decode.canvas import Canvas
from starr.decode.enforce import Step
from starr.decode.extras.base import Guest
from starr.decode.request import Request
from starr.decode.view import KEEP

if TYPE_CHECKING:
    from starr.model.load import Model

USED = "extra_steps"  # (B,) int64


class ExtraSteps(Guest):
    """A window without masks stays open for so many steps, or until one of them changes nothing."""

    name: ClassVar[str] = "extra_steps"

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        super().__init__(model, requests, rows)
        self.allowed = torch.tensor([r.strategy.needs().get(self.name, 0) for r in requests], device=model.device)

    def apply(self, canvas: Canvas, step: Step) -> Canvas:
        used, acted = canvas.notes.get(USED, torch.zeros_like(canvas.window.step)), (step.action != KEEP).any(dim=1)
        over = canvas.total >= stop_after(canvas, step.verdict).limit
        spent = (used >= self.allowed) | ((used > 0) & ~acted) | over
        full = ~(canvas.masked & canvas.in_window).any(dim=1)
        # Only a window that closes gives them back: one whose tokens are revoked does not get them anew.
        used = torch.where(spent & full, 0, used + (full & ~spent))
        window = replace(canvas.window, kept_open=canvas.window.kept_open | (full & ~spent))
        return replace(canvas.noted({USED: used}), window=window)

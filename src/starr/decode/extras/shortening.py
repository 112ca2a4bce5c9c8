"""A canvas whose end is cut off: no forward computes it again (learn2pd, arXiv:2509.25188)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from torch import Tensor

from starr.decode.canvas import Canvas
from starr.decode.enforce import Step
from starr.decode.extras.base import Guest
from starr.decode.request import Request


class Shortening(Guest):
    """Rows whose strategy cuts: ``Decision.extras`` has ``cut`` (B,), how many window positions are left, or -1.

    Rows that no end-of-text ends, and rows with a constraint, which reckons with the whole canvas, keep their length.
    """

    name: ClassVar[str] = "shortening"

    @classmethod
    def serves(cls, request: Request) -> bool:
        return super().serves(request) and request.ends and request.constraint is None

    def apply(self, canvas: Canvas, step: Step) -> Canvas:
        wanted = step.decision.extras["cut"].index_select(0, self.rows)
        until = (canvas.window.start[self.rows] + wanted).minimum(canvas.length[self.rows])
        length = canvas.length.index_copy(0, self.rows, until.where(wanted > 0, canvas.length[self.rows]))
        return shortened(canvas, length)


def shortened(canvas: Canvas, length: Tensor) -> Canvas:
    """The canvas with rows of ``length`` (B,) positions, none longer than before; the rest is frozen padding."""
    gone = canvas.column_index >= length[:, None]
    return replace(
        canvas,
        length=length,
        masked=canvas.masked & ~gone,
        frozen=canvas.frozen | gone,
        changed=canvas.changed & ~gone,
        window=replace(canvas.window, end=canvas.window.end.minimum(length)),
        goal=canvas.goal.minimum(length),
    )

"""End a row at its first held end-of-text (Elastic-Cache, arXiv:2510.14973)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from starr.decode.stops.base import Moment, StopRule
from starr.decode.view import StepView
from starr.errors import InputError
from starr.plugins import register

if TYPE_CHECKING:
    from starr.decode.request import Request


@register
@dataclass(frozen=True, kw_only=True)
class EndOfText(StopRule):
    """Masks after the first held end-of-text are never decoded; the row ends when everything before it is held.

    If the end-of-text is revoked, they are open again. Rows end at an end-of-text without this rule too, but then a
    strategy spends commits after it.
    """

    name: ClassVar[str] = "eos"
    paper: ClassVar[str] = "Elastic-Cache, arXiv:2510.14973"

    def check_request(self, request: Request) -> None:
        if not request.ends:
            raise InputError("Stop rule eos cannot be used: no end-of-text ends this canvas.", param="stop_rule")

    def hides(self, view: StepView, moment: Moment) -> Tensor:
        return moment.ended.cumsum(dim=1) > 0

"""No cache: every forward recomputes everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from starr.decode.caches.base import Cache
from starr.plugins import register

if TYPE_CHECKING:
    from starr.decode.canvas import Canvas


@register
@dataclass(frozen=True, kw_only=True)
class NoCache(Cache):
    """Recompute everything at every step."""

    name: ClassVar[str] = "none"
    paper: ClassVar[str] = "plain decoding"
    buffered: ClassVar[bool] = False

    def query(self, canvas: Canvas) -> Tensor:
        return canvas.valid

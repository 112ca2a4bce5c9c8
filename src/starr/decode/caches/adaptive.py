"""dLLM-Cache (arXiv:2506.06295): between refreshes, recompute the canvas positions whose values moved most.

Per row and step t from 0: the prompt when t is a multiple of K_p, the canvas when t is a multiple of K_r; otherwise the
floor(rho * L) canvas positions, at least one, with the lowest cosine between their new and their cached values, ties
to the lower position.

Where this differs from the paper. It chooses anew in every layer, replaces the values of all canvas positions there,
and carries the others through by their stored attention and MLP outputs. Here the choice is made once, by the values
of layer 1: layer 0 runs over the whole canvas (the paper recomputes it always, too), and what layer 1 would then take
as values is compared with the buffer. Chosen positions are recomputed in all layers; the others keep K/V, proposal and
confidence. Layer 0 alone would not do: its values depend on nothing but the token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from starr.decode.caches.base import Cache, every, response
from starr.decode.ranking import top_of
from starr.named import option
from starr.plugins import register

if TYPE_CHECKING:
    from starr.decode.canvas import Canvas


@register
@dataclass(frozen=True, kw_only=True)
class Adaptive(Cache):
    """Recompute the share of the canvas whose values moved most; canvas and prompt at their own intervals."""

    name: ClassVar[str] = "adaptive"
    paper: ClassVar[str] = "dLLM-Cache, arXiv:2506.06295"
    skips: ClassVar[bool] = True
    measures: ClassVar[bool] = True
    prompt_refresh: int = option(50, "K_p: steps between forwards that recompute the prompt", low=1)
    refresh: int = option(7, "K_r: steps between forwards that recompute the whole canvas", low=1)
    share: float = option(0.25, "rho: share of the canvas recomputed in between", low=0.0, high=1.0)

    def query(self, canvas: Canvas) -> Tensor:
        behind = response(canvas) & canvas.valid
        count = ((canvas.length - canvas.rules.start) * self.share).floor().clamp_min(1)  # a forward queries something
        moved = top_of(canvas.notes["moved"], behind, count)
        again = every(canvas.total, self.refresh)[:, None] & behind
        return (every(canvas.total, self.prompt_refresh)[:, None] & ~behind) | again | moved

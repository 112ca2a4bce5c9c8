"""dKV-Cache (arXiv:2505.15781): K/V of a token are kept from the first forward that saw it as a token.

At step i of a window everything is recomputed if i <= 1 or i is a multiple of ``refresh``. Otherwise only what was not
held after step i - 2: masks, and what the last step wrote; this is the one-step delay. A revoked token is a mask again
and so leaves the cache at once. For shifted logits a position is left out only if it and the one after it are held
(the paper's ``un_right``): its other two variants would predict from stale rows or keep the K/V of a mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from starr.decode.caches.base import Cache, every, never, response
from starr.decode.ranking import top_of
from starr.named import option
from starr.plugins import register

if TYPE_CHECKING:
    from starr.decode.canvas import Canvas

PAPER = "dKV-Cache, arXiv:2505.15781"


def refreshes(canvas: Canvas, interval: int) -> Tensor:
    """(B, 1) bool: the step recomputes everything the rule may refresh."""
    return ((canvas.window.step <= 1) | every(canvas.window.step, interval))[:, None]


def fresh(canvas: Canvas) -> Tensor:
    """(B, C) bool: not held after the step before the last, i.e. masked, or written by the last step."""
    return canvas.masked | canvas.changed


@register
@dataclass(frozen=True, kw_only=True)
class DkvCache(Cache):
    """Recompute masks and what was just written; the whole row every ``refresh`` steps."""

    name: ClassVar[str] = "dkv"
    paper: ClassVar[str] = PAPER
    refresh: int = option(8, "steps of a window between full forwards", low=1)

    def query(self, canvas: Canvas) -> Tensor:
        return refreshes(canvas, self.refresh) | fresh(canvas)


@register
@dataclass(frozen=True, kw_only=True)
class DkvPrefill(Cache):
    """Recompute everything but the prompt."""

    name: ClassVar[str] = "dkv-prefill"
    paper: ClassVar[str] = PAPER
    prompt_refresh: int = never("steps between forwards that recompute the prompt")

    def query(self, canvas: Canvas) -> Tensor:
        return every(canvas.total, self.prompt_refresh)[:, None] | response(canvas)


@register
@dataclass(frozen=True, kw_only=True)
class DkvPrefillDecode(Cache):
    """As dkv, but the prompt is kept."""

    name: ClassVar[str] = "dkv-pd"
    paper: ClassVar[str] = PAPER
    refresh: int = option(8, "steps of a window between forwards over the whole canvas", low=1)
    prompt_refresh: int = never("steps between forwards that recompute the prompt")

    def query(self, canvas: Canvas) -> Tensor:
        again = refreshes(canvas, self.refresh) & response(canvas)
        return every(canvas.total, self.prompt_refresh)[:, None] | again | fresh(canvas)


@register
@dataclass(frozen=True, kw_only=True)
class DkvGreedy(Cache):
    """Recompute what was just written, the next tokens and the masks around them; the row every ``refresh`` steps.

    The paper knows the order of tokens in advance. Here the next are the most confident masks of the window by what was
    last seen, as many as the last step wrote and at least one; ties to the lower position. Around each, ``window`` // 2
    masks on either side, counted over masks, are recomputed too.
    """

    name: ClassVar[str] = "dkv-greedy"
    paper: ClassVar[str] = PAPER
    skips: ClassVar[bool] = True
    refresh: int = option(2, "steps of a window between full forwards", low=1)
    window: int = option(4, "masks recomputed around each next token", low=0, high=1024)

    def query(self, canvas: Canvas) -> Tensor:
        open_ = canvas.masked & canvas.in_window
        written = (canvas.changed & ~canvas.masked).sum(dim=1).clamp(min=1)
        coming = top_of(canvas.last.confidence, open_, written)
        return refreshes(canvas, self.refresh) | canvas.changed | around(coming, open_, self.window // 2)


def around(chosen: Tensor, among: Tensor, reach: int) -> Tensor:
    """(B, C) bool: the positions ``among`` at most ``reach`` of them away from a chosen one, itself included."""
    rank = (among.cumsum(dim=1) - 1).clamp(min=0)
    packed = torch.zeros_like(chosen, dtype=torch.float32).scatter_add(1, rank, (chosen & among).float())
    near = F.max_pool1d(packed[:, None], 2 * reach + 1, stride=1, padding=reach)[:, 0]
    return among & (near.gather(1, rank) > 0)

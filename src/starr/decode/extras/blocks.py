"""Block-causal models: blocks are decided from left to right, and finished ones are sealed (``caches.exact``).

Blocks are cut at the row's origin, position 0 for most models, so the first one may begin with the end of the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from starr.decode.caches.exact import BLOCK, SEALED, led, open_positions, span
from starr.decode.canvas import Canvas, Places
from starr.decode.extras.base import Guest
from starr.decode.propose import ProposalRequest
from starr.decode.request import Request
from starr.decode.view import Action, Decision, StepView
from starr.errors import InputError

if TYPE_CHECKING:
    from starr.model.load import Model


class SealedBlocks(Guest):
    """All rows of a block-causal model; with cache ``none`` everything up to the open block's end is recomputed."""

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        super().__init__(model, requests, rows)
        self.shift = model.spec.shift
        kept = [request.cache.buffered for request in self.requests]
        narrow = [getattr(request.cache, "sub_blocks", False) for request in self.requests]
        self.some_kept, self.some_narrow = any(kept), any(narrow)
        self.kept, self.narrow = (torch.tensor(flags, device=model.device) for flags in (kept, narrow))

    @classmethod
    def serves(cls, request: Request) -> bool:
        return request.blocks is not None

    @classmethod
    def check(cls, request: Request) -> None:
        """Refuse what needs to see or to change more than the open block."""
        if request.cache.buffered and not request.cache.block_causal:
            request.refuse_cache("K/V of a block-causal model need no approximation, exact keeps them as they are")
        first = request.masked.index(True) if True in request.masked else len(request.masked)
        if not all(request.masked[first:]):
            raise InputError(
                "Text after a mask cannot be used: a block-causal model does not see what follows a block.",
                hint="Use a model with full attention.",
                param="prompt",
            )
        why = whole_canvas(request)
        if why:
            raise InputError(
                f"{request.strategy.name} cannot be used with a block-causal model: {why}.",
                hint="Use a strategy that decides within a block, e.g. threshold.",
                param="strategy",
            )

    @classmethod
    def begin(cls, requests: Sequence[Request], canvas: Canvas) -> Mapping[str, Tensor]:
        lengths = [0 if request.blocks is None else request.blocks.length for request in requests]
        return {BLOCK: torch.tensor(lengths, device=canvas.step.device), SEALED: torch.zeros_like(canvas.masked)}

    def query(self, canvas: Canvas, query: Tensor) -> Tensor:
        if not self.some_kept:
            return whole_prefix(canvas, self.shift)
        exact = open_positions(canvas, shift=self.shift)
        if self.some_narrow:
            exact = torch.where(self.narrow[:, None], open_positions(canvas, shift=self.shift, sub_blocks=True), exact)
        return torch.where(self.kept[:, None], exact, whole_prefix(canvas, self.shift))

    def propose(self, request: ProposalRequest, canvas: Canvas, observed: Places) -> ProposalRequest:
        """The first token of a block is never drawn at random where it comes from the seal."""
        if request.temperature is None or not self.shift:
            return request
        greedy = led(canvas, self.shift)[:, None].expand(observed.index.shape).reshape(-1)
        return replace(request, temperature=request.temperature.masked_fill(greedy, 0.0))

    def observe(self, canvas: Canvas, window: Tensor, states: Tensor | None) -> Canvas:
        """What lies before the open block has now been computed from final tokens."""
        start, _ = span(canvas)
        return canvas.noted({SEALED: canvas.notes[SEALED] | (canvas.column_index < start[:, None])})

    def amend(self, action: Tensor, written: Tensor, view: StepView, canvas: Canvas) -> tuple[Tensor, Tensor]:
        """A forward that gives only the block's first token commits that token and no other."""
        if not self.shift:
            return action, written
        only = torch.full_like(action, int(Action.KEEP))
        only[:, 0] = int(Action.COMMIT)
        return torch.where(led(canvas, self.shift)[:, None], only, action), written

    def apply(self, canvas: Canvas, decision: Decision) -> Canvas:
        """A full block that a step has not changed is sealed by that step's own forward."""
        start, end = span(canvas)
        at = canvas.column_index
        inside = (at >= start[:, None]) & (at < end[:, None])
        open_ = (inside & (canvas.masked | canvas.changed)).any(dim=1) | self.narrow
        return canvas.noted({SEALED: canvas.notes[SEALED] | (inside & ~open_[:, None])})

    def reach(self, canvas: Canvas) -> Tensor:
        return span(canvas)[1]

    def earlier(self, canvas: Canvas, query: Tensor) -> Tensor:
        """(B,) int64: queried positions before the open block, which are computed for their K/V."""
        start, _ = span(canvas)
        return (query & (canvas.column_index < start[:, None]) & self.kept[:, None]).sum(dim=1)


def whole_prefix(canvas: Canvas, shift: bool) -> Tensor:
    """(B, C) bool: everything up to the open block's end, or to its start where that gives its first token."""
    start, end = span(canvas)
    return (canvas.column_index < torch.where(led(canvas, shift), start, end)[:, None]) & canvas.valid


def whole_canvas(request: Request) -> str | None:
    """Why the row's strategy needs more than the open block."""
    strategy = request.strategy
    if strategy.grows() > 0:
        return "it moves text to other blocks"
    if strategy.moves_end:
        return "it cuts blocks of its own, and the model's are fixed"
    if strategy.looks_ahead or strategy.looks_back:
        return "it looks beyond the open block"
    if "shadow" in strategy.signals:
        return "its shadow block needs full attention"
    return None

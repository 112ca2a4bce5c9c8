"""A shadow block of masks after the row, in the same forward (wino, arXiv:2507.18578).

The paper has it for models that predict a position in place. Where logits are shifted (Dream), a shadow stands one
position to the left of the token that it is blind to, because the state there is the one that predicts it.

Letters: K rows, C columns (the last one spare), W window positions, O observed positions, D width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.canvas import Canvas
from starr.decode.extras.base import Guest, GuestStates
from starr.decode.forward import ForwardCall, columns_of, rows_of
from starr.decode.propose import ProposalRequest, propose
from starr.decode.request import Request
from starr.errors import InputError
from starr.model.network.transformer import Transformer

SHADOW = "shadow"  # (B, C) float32, and the signal's name


class Shadow(Guest):
    """Signal ``shadow``: the leave-one-out probability of every held token of the window."""

    claims: ClassVar[bool] = True

    @classmethod
    def serves(cls, request: Request) -> bool:
        return SHADOW in request.strategy.signals

    @classmethod
    def check(cls, request: Request) -> None:
        if request.cache.buffered:
            request.refuse_cache(f"{request.strategy.name} needs its shadow block in a whole forward")
        if request.options.smoothing > 0:
            rule = f"{request.strategy.name} cannot be used with smoothing: its shadow block is of plain masks."
            raise InputError(rule, hint="Use smoothing 0.", param="strategy")

    @classmethod
    def begin(cls, requests: Sequence[Request], canvas: Canvas) -> Mapping[str, Tensor]:
        return {SHADOW: torch.zeros_like(canvas.confidence)}

    def forward(self, call: ForwardCall, wanted: Tensor) -> GuestStates:
        canvas, spec = call.canvas, self.model.spec
        tokens, length, window = rows_of(self.rows, canvas.tokens, canvas.length, call.window)
        masks = torch.full_like(window, spec.mask_id)
        states = with_shadow(self.model.net, tokens, length, window, masks, wanted, shift=spec.shift)
        return GuestStates(states[:, : wanted.shape[1]], states[:, wanted.shape[1] :])

    def observe(self, canvas: Canvas, window: Tensor, states: Tensor | None) -> Canvas:
        assert states is not None
        spec, head = self.model.spec, self.model.net.head
        where = window.index_select(0, self.rows)
        held = canvas.tokens.index_select(0, self.rows).gather(1, where)
        asked = ProposalRequest(spec.mask_id, held.reshape(-1))
        own = propose(head, states.flatten(0, 1), asked, spec.shape.vocab_size).own
        note = canvas.notes[SHADOW].index_put((self.rows[:, None], where), own.view(held.shape))
        return canvas.noted({SHADOW: note})

    def positions(self, place: int, length: int, width: int) -> int:
        return width


def with_shadow(
    net: Transformer, tokens: Tensor, length: Tensor, window: Tensor, masks: Tensor, wanted: Tensor, *, shift: bool
) -> Tensor:
    """(K, O + W, D): a whole forward over tokens (K, C) with a shadow block of ``masks`` (K, W) after it.

    Shadow j stands at the position that predicts window column ``window[:, j]`` (itself, or with ``shift`` the one
    before) and sees everything but that column. Nobody else sees the shadow. So its states, the last W, give the
    leave-one-out distributions of held tokens.
    """
    rows, columns = tokens.shape
    width = window.shape[1]
    at = columns_of(tokens)
    valid, real = at < length[:, None], window < columns - 1
    seen = torch.cat([valid, torch.zeros_like(real)], dim=1)[:, None].expand(rows, columns, columns + width)
    not_own = at[:, None] != window[..., None]
    by_shadow = torch.cat([valid[:, None] & not_own, real[:, None].expand(rows, width, width)], dim=2)
    shadow = torch.arange(columns, columns + width, device=tokens.device).expand(rows, width)
    return net(  # type: ignore[no-any-return]
        torch.cat([tokens, masks], dim=1),
        torch.cat([at.expand(rows, columns), (window - int(shift)).clamp(min=0)], dim=1),
        attend=torch.cat([seen, by_shadow], dim=1),
        wanted=torch.cat([wanted, shadow], dim=1),
    )

"""Model calls: positions of some rows in, hidden states out.

Rows without a cache go through a whole forward, rows with one through a forward over their queried positions, and rows
that a guest claims through the guest's own. Letters: B rows, K rows of one call, C columns (the last one spare), Q
queried, O observed, W window positions, D width. Where the model's logits are shifted (Dream), the hidden state that
predicts position i is that of position i - 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from starr.decode.canvas import Canvas, Places, places
from starr.decode.query import QueryPlan
from starr.decode.settings import RowSettings
from starr.model.network.masks import block_causal
from starr.model.network.transformer import KVBuffer, Transformer
from starr.model.spec import ModelSpec

if TYPE_CHECKING:
    from starr.decode.extras.base import Guest, Guests


@dataclass(frozen=True, slots=True)
class ForwardCall:
    """What one step's forward works on."""

    canvas: Canvas
    settings: RowSettings
    plan: QueryPlan
    window: Tensor  # (B, W) int64: columns of each row's window
    observed: Places  # (B, O): the positions to predict
    buffer: KVBuffer | None
    plain: list[int]  # positions of each row of whole forwards
    total: list[int]  # positions of each row


@dataclass(frozen=True, slots=True)
class States:
    """Hidden states of a step."""

    observed: Tensor  # (B * O, D)
    unguided: Tensor | None  # (B * O, D), with the prompt masked
    guests: Mapping[Guest, Tensor | None]  # what each claiming guest wants besides


def forward(net: Transformer, spec: ModelSpec, call: ForwardCall, guests: Guests) -> States:
    """One forward for each kind of row in the batch (usually there is one kind), and one more for guidance."""
    canvas, settings = call.canvas, call.settings
    wanted = (call.observed.index - 1).clamp(min=0) if spec.shift else call.observed.index
    added = guests.embed(canvas)
    parts: list[tuple[Tensor, Tensor]] = []
    if len(settings.plain):
        tokens, length, want = rows_of(settings.plain, canvas.tokens, call.plan.query.sum(dim=1), wanted)
        masks = BlockMasks.of(canvas, settings, settings.plain)
        more = some_of(settings.plain, added)
        parts.append((settings.plain, whole(net, tokens, length, call.plain, want, masks, more)))
    if len(settings.buffered) and call.buffer is not None:
        some = rows_of(settings.buffered, canvas.tokens, canvas.length, wanted, call.plan.query)
        tokens, length, want, query = some
        where = places(query, call.plan.most_queried)
        masks = BlockMasks.of(canvas, settings, settings.buffered)
        more = some_of(settings.buffered, added)
        states = partial(net, tokens, length, where, call.buffer, want, masks, call.plan.reach, more)
        parts.append((settings.buffered, states))
    besides: dict[Guest, Tensor | None] = {}
    for guest in guests.claiming:
        found = guest.forward(call, rows_of(guest.rows, wanted)[0])
        parts.append((guest.rows, found.observed))
        besides[guest] = found.more
    unguided = None
    if settings.guidance is not None:
        blind = canvas.tokens.masked_fill(canvas.column_index < canvas.start[:, None], spec.mask_id)
        everyone = torch.arange(len(blind), device=blind.device)
        masks = BlockMasks.of(canvas, settings, everyone)
        unguided = whole(net, blind, canvas.length, call.total, wanted, masks, added).flatten(0, 1)
    return States(together(parts, len(wanted)).flatten(0, 1), unguided, besides)


@dataclass(frozen=True, slots=True)
class BlockMasks:
    """Which positions see which in K rows of a block-causal model."""

    length: Tensor  # (K,) int64: of a block
    origin: Tensor  # (K,) int64: where a block starts

    @classmethod
    def of(cls, canvas: Canvas, settings: RowSettings, rows: Tensor) -> BlockMasks | None:
        """None for models with full attention."""
        return None if settings.blocks is None else cls(*rows_of(rows, settings.blocks, canvas.origin))

    def seen(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(K, Q, S) bool for columns ``queries`` (K or 1, Q) and ``keys`` (1, S)."""
        return block_causal(queries - self.origin[:, None], keys - self.origin[:, None], self.length)


def whole(
    net: Transformer,
    tokens: Tensor,
    length: Tensor,
    sizes: list[int],
    wanted: Tensor,
    masks: BlockMasks | None,
    added: Tensor | None = None,
) -> Tensor:
    """(K, O, D): the first ``length`` (K,) positions of every row (K, C), without a buffer; ``sizes`` are the same.

    ``added`` (K, C, D) comes on top of the tokens' embeddings.
    """
    tokens, added = tokens[:, : max(sizes)], None if added is None else added[:, : max(sizes)]
    at = columns_of(tokens)
    seen = None if masks is None else masks.seen(at, at)
    if sum(sizes) == tokens.numel():
        return net(tokens, attend=seen, wanted=wanted, added=added)  # type: ignore[no-any-return]
    return net.packed(tokens, length, sum(sizes), wanted, seen, added)


def partial(
    net: Transformer,
    tokens: Tensor,
    length: Tensor,
    where: Places,
    buffer: KVBuffer,
    wanted: Tensor,
    masks: BlockMasks | None,
    reach: int,
    added: Tensor | None = None,
) -> Tensor:
    """(K, O, D): only the queried positions; their K/V go into the buffer, those of padding to the spare slot.

    Nobody sees the columns from ``reach`` on, so that its slot can be the spare one.
    """
    index = where.index.clamp(max=reach)
    at = columns_of(tokens)[:, : reach + 1]
    attend = at < length.clamp(max=reach)[:, None]
    if masks is not None:
        attend = attend[:, None] & masks.seen(index, at)
    among = slots_of(where, tokens.shape[1]).gather(1, wanted)
    more = None if added is None else added.take_along_dim(index[..., None], dim=1)
    return net(tokens.gather(1, index), index, attend, buffer.until(reach + 1), index, among, more)  # type: ignore[no-any-return]


def columns_of(tokens: Tensor) -> Tensor:
    """(1, C) int64."""
    return torch.arange(tokens.shape[1], device=tokens.device)[None]


def slots_of(where: Places, columns: int) -> Tensor:
    """(K, C) int64: the place of each column among the queried ones; 0 for the others, which nobody asks for."""
    rows, most = where.index.shape
    place = torch.arange(most, device=where.index.device).expand(rows, most)
    return torch.zeros((rows, columns), dtype=torch.int64, device=place.device).scatter_(1, where.index, place)


def rows_of(rows: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
    """The given rows of each tensor; all of them is a no-op."""
    return tensors if len(rows) == len(tensors[0]) else tuple(t.index_select(0, rows) for t in tensors)


def some_of(rows: Tensor, added: Tensor | None) -> Tensor | None:
    """The given rows of what there may be."""
    return None if added is None else rows_of(rows, added)[0]


def together(parts: list[tuple[Tensor, Tensor]], rows: int) -> Tensor:
    """(B, O, D) from the calls that each served some rows."""
    if len(parts) == 1:
        return parts[0][1]
    joined = parts[0][1].new_zeros(rows, *parts[0][1].shape[1:])
    for some, states in parts:
        joined[some] = states
    return joined

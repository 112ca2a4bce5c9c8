"""Model calls: positions of some rows in, hidden states out.

Rows without a cache go through a whole forward, rows with one through a forward over their queried positions. Guests
may add *extra queries* to a row, or whole extra rows. Where the model's logits are shifted (Dream), the hidden state
that predicts position i is that of position i - 1. Letters: B rows, K rows of one call, N extra rows, C columns (the
last one spare), Q queried, O observed, W window positions, S columns with extra queries, X extra queries, D width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from starr.decode.canvas import Canvas, Columns, columns_where
from starr.decode.query import QueryPlan
from starr.decode.settings import RowSettings
from starr.model.network.masks import block_causal
from starr.model.network.transformer import KVBuffer, Transformer
from starr.model.spec import ModelSpec

if TYPE_CHECKING:
    from starr.decode.propose import Proposals


@dataclass(frozen=True, slots=True)
class ExtraQueries:
    """Queries besides those of the canvas, in the same forward: no position of the canvas sees them.

    A column may have several of them: the first S predict, one for each column. Rows have different numbers of columns;
    what lies beyond a row's own (``columns.count``) is padding.
    """

    columns: Columns  # (B, S): the columns that they are about
    tokens: Tensor  # (B, X) int64
    position: Tensor  # (B, X) int64: where each one stands
    sees: Tensor  # (B, X, C) bool: the columns that each one sees
    among: Tensor  # (B, X, X) bool: the extra queries that each one sees

    def select(self, rows: Tensor) -> ExtraQueries:
        """Those of some rows (K,) int64."""
        index, count, *rest = rows_of(rows, self.columns.index, self.columns.count, *self.parts)
        return ExtraQueries(Columns(index, count), *rest)

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.tokens, self.position, self.sees, self.among

    @property
    def most(self) -> int:
        """Columns of the row that has most."""
        return self.columns.index.shape[1]

    @property
    def each(self) -> int:
        """Queries for each column."""
        return self.tokens.shape[1] // self.most

    def attend(self, seen: Tensor, masks: BlockMasks | None) -> Tensor:
        """(K, Q + X, S + X) bool: ``seen`` (K, Q, S) of the canvas's own queries, and behind it what these see."""
        rows, own, slots = seen.shape
        sees, among = self.sees[:, :, :slots], self.among
        if masks is not None:
            sees = sees & masks.seen(self.position, torch.arange(slots, device=seen.device)[None])
            among = among & masks.seen(self.position, self.position)
        hidden = seen.new_zeros(rows, own, self.tokens.shape[1])
        return torch.cat([torch.cat([seen, hidden], dim=2), torch.cat([sees, among], dim=2)], dim=1)

    def behind(self, wanted: Tensor, queries: int) -> Tensor:
        """(K, O + S) int64: the wanted queries, and those of these that predict, which stand behind the others."""
        predict = torch.arange(queries, queries + self.most, device=wanted.device)
        return torch.cat([wanted, predict.expand(len(wanted), -1)], dim=1)


@dataclass(frozen=True, slots=True)
class ExtraRows:
    """Other states of some rows, as whole rows in the same forward."""

    source: Tensor  # (N,) int64: the row that each one is a state of
    number: Tensor  # (N,) int64: which state of that row, from 1 on
    tokens: Tensor  # (N, C) int64
    counts: list[int]  # how many each row of the batch has


@dataclass(frozen=True, slots=True)
class ForwardCall:
    """What one step's forward works on."""

    canvas: Canvas
    settings: RowSettings
    plan: QueryPlan
    window: Tensor  # (B, W) int64: columns of each row's window
    observed: Columns  # (B, O): the positions to predict
    buffer: KVBuffer | None
    plain: list[int]  # rows of whole forwards
    total: list[int]  # positions of each row
    besides: list[int]  # positions that each row costs besides its query
    added: Tensor | None = None  # (B, C, D): what is added to the tokens' embeddings
    extra: ExtraQueries | None = None
    drafts: ExtraRows | None = None

    def cost_more(self, more: Mapping[int, int]) -> ForwardCall:
        """The call with more positions for some rows, by row."""
        return replace(self, besides=[cost + more.get(row, 0) for row, cost in enumerate(self.besides)])


@dataclass(frozen=True, slots=True)
class States:
    """Hidden states of a step."""

    observed: Tensor  # (B * O, D)
    unguided: Tensor | None  # (B * O, D), with the prompt masked
    extra: Tensor | None = None  # (B, S, D): of the extra queries that predict
    drafts: Tensor | None = None  # (N, W, D): of the windows of extra rows


@dataclass(frozen=True, slots=True)
class Seen:
    """What a forward and the head told, for guests."""

    call: ForwardCall
    states: States
    found: Proposals
    left_out: Proposals | None = None  # of the columns of extra queries, N = B * S


def forward(net: Transformer, spec: ModelSpec, call: ForwardCall) -> States:
    """One forward for each kind of row in the batch (usually there is one kind), and one more for guidance."""
    canvas, settings, extra = call.canvas, call.settings, call.extra
    wanted = predictors(call.observed.index, spec.shift)
    parts: list[tuple[Tensor, Tensor]] = []
    drafts = None
    plain, shadowed = split_rows(settings.plain, call)
    if len(plain):
        states, drafts = whole_rows(net, spec, call, plain, wanted)
        parts.append((plain, states))
    if len(shadowed) and extra is not None:
        parts.append((shadowed, whole_with_extra(net, call, shadowed, wanted, extra.select(shadowed))))
    if len(settings.buffered) and call.buffer is not None:
        some = rows_of(settings.buffered, canvas.tokens, canvas.length, wanted, call.plan.query)
        tokens, length, want, query = some
        where = columns_where(query, call.plan.most_queried)
        masks = BlockMasks.of(canvas, settings, settings.buffered)
        asked = any(number for row, number in enumerate(call.plan.figures.extra) if row not in call.plain)
        beside = extra.select(settings.buffered) if extra is not None and asked else None
        more = some_of(settings.buffered, call.added)
        states = partial(net, tokens, length, where, call.buffer, want, masks, call.plan.reach, more, beside)
        parts.append((settings.buffered, states))
    unguided = None
    if settings.guidance is not None:
        blind = canvas.tokens.masked_fill(canvas.column_index < canvas.rules.start[:, None], spec.mask_id)
        everyone = torch.arange(len(blind), device=blind.device)
        masks = BlockMasks.of(canvas, settings, everyone)
        unguided = whole(net, blind, canvas.length, call.total, wanted, masks, call.added).flatten(0, 1)
    most = 0 if extra is None else extra.most
    found = together(parts, len(wanted), wanted.shape[1] + most)
    observed, besides = found[:, : wanted.shape[1]], found[:, wanted.shape[1] :]
    return States(observed.flatten(0, 1), unguided, besides if most else None, drafts)


def predictors(columns: Tensor, shift: bool) -> Tensor:
    """The columns whose states predict ``columns``."""
    return (columns - 1).clamp(min=0) if shift else columns


def split_rows(rows: Tensor, call: ForwardCall) -> tuple[Tensor, Tensor]:
    """The rows (K,) int64 of whole forwards without and with extra queries."""
    with_extra = [row for row in call.plain if call.plan.figures.extra[row]]
    if not with_extra:
        return rows, rows[:0]
    without = [row for row in call.plain if row not in with_extra]
    return torch.tensor(without, dtype=rows.dtype, device=rows.device), torch.tensor(with_extra, device=rows.device)


def whole_rows(
    net: Transformer, spec: ModelSpec, call: ForwardCall, rows: Tensor, wanted: Tensor
) -> tuple[Tensor, Tensor | None]:
    """(K, O, D) of whole forwards, and (N, W, D) of the windows of extra rows."""
    canvas, drafts, figures = call.canvas, call.drafts, call.plan.figures
    tokens, length, want = rows_of(rows, canvas.tokens, call.plan.query.sum(dim=1), wanted)
    masks = BlockMasks.of(canvas, call.settings, rows)
    sizes = [figures.queried[row] for row in call.plain if not figures.extra[row]]
    added = some_of(rows, call.added)
    if drafts is None or not len(drafts.source):
        return whole(net, tokens, length, sizes, want, masks, added), None
    window = predictors(call.window, spec.shift)
    every = torch.cat(
        [torch.cat([want, rows_of(rows, window)[0]], dim=1), torch.cat([wanted, window], 1)[drafts.source]]
    )
    tokens = torch.cat([tokens, drafts.tokens])
    length = torch.cat([length, canvas.length[drafts.source]])
    sizes = sizes + [call.total[row] for row, count in enumerate(drafts.counts) for _ in range(count)]
    added = None if added is None else F.pad(added, (0, 0, 0, 0, 0, len(drafts.source)))
    found = whole(net, tokens, length, sizes, every, masks, added)
    return found[: len(rows), : want.shape[1]], found[len(rows) :, want.shape[1] :]


def whole_with_extra(net: Transformer, call: ForwardCall, rows: Tensor, wanted: Tensor, extra: ExtraQueries) -> Tensor:
    """(K, O + S, D): whole forwards over some rows with extra queries behind them."""
    canvas, figures = call.canvas, call.plan.figures
    chosen = [row for row in call.plain if figures.extra[row]]
    most = max(figures.queried[row] for row in chosen)
    tokens, length, want = rows_of(rows, canvas.tokens[:, :most], call.plan.query.sum(dim=1), wanted)
    at, masks, added = columns_of(tokens), BlockMasks.of(canvas, call.settings, rows), some_of(rows, call.added)
    real = at < length[:, None]
    seen = real[:, None].expand(-1, most, -1)
    return net.packed(
        torch.cat([tokens, extra.tokens], dim=1),
        torch.cat([real, extra.columns.real.repeat(1, extra.each)], dim=1),
        sum(figures.queried[row] + extra.each * figures.extra[row] for row in chosen),
        extra.behind(want, most),
        extra.attend(seen if masks is None else seen & masks.seen(at, at), masks),
        None if added is None else F.pad(added[:, :most], (0, 0, 0, extra.tokens.shape[1])),
        torch.cat([at.expand_as(tokens), extra.position], dim=1),
    )


@dataclass(frozen=True, slots=True)
class BlockMasks:
    """Which positions see which in K rows of a block-causal model."""

    length: Tensor  # (K,) int64: of a block
    origin: Tensor  # (K,) int64: where a block starts

    @classmethod
    def of(cls, canvas: Canvas, settings: RowSettings, rows: Tensor) -> BlockMasks | None:
        """None for models with full attention."""
        return None if settings.blocks is None else cls(*rows_of(rows, settings.blocks.length, canvas.rules.origin))

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
    return net.packed(tokens, at < length[:, None], sum(sizes), wanted, seen, added)


def partial(
    net: Transformer,
    tokens: Tensor,
    length: Tensor,
    where: Columns,
    buffer: KVBuffer,
    wanted: Tensor,
    masks: BlockMasks | None,
    reach: int,
    added: Tensor | None = None,
    extra: ExtraQueries | None = None,
) -> Tensor:
    """(K, O + X, D): only the queried positions; their K/V go into the buffer, those of padding to the spare slot.

    Nobody sees the columns from ``reach`` on, so that its slot can be the spare one. Extra queries see the buffer and
    leave nothing there.
    """
    index = where.index.clamp(max=reach)
    at = columns_of(tokens)[:, : reach + 1]
    attend = at < length.clamp(max=reach)[:, None]
    if masks is not None:
        attend = attend[:, None] & masks.seen(index, at)
    among = slots_of(where, tokens.shape[1]).gather(1, wanted)
    more = None if added is None else added.take_along_dim(index[..., None], dim=1)
    tokens, kept = tokens.gather(1, index), buffer.until(reach + 1)
    if extra is None:
        return net(tokens, index, attend, kept, index, among, more)  # type: ignore[no-any-return]
    seen = (attend if attend.dim() == 3 else attend[:, None]).expand(-1, index.shape[1], -1)
    aside = extra.tokens.shape[1]
    return net(  # type: ignore[no-any-return]
        torch.cat([tokens, extra.tokens], dim=1),
        torch.cat([index, extra.position], dim=1),
        extra.attend(seen, masks),
        kept,
        index,
        extra.behind(among, index.shape[1]),
        None if more is None else F.pad(more, (0, 0, 0, aside)),
        aside,
    )


def columns_of(tokens: Tensor) -> Tensor:
    """(1, C) int64."""
    return torch.arange(tokens.shape[1], device=tokens.device)[None]


def slots_of(where: Columns, columns: int) -> Tensor:
    """(K, C) int64: the number of each column among the queried ones; 0 for the others, which nobody asks for."""
    rows, most = where.index.shape
    number = torch.arange(most, device=where.index.device).expand(rows, most)
    return torch.zeros((rows, columns), dtype=torch.int64, device=number.device).scatter_(1, where.index, number)


def rows_of(rows: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
    """The given rows of each tensor; all of them is a no-op."""
    return tensors if len(rows) == len(tensors[0]) else tuple(t.index_select(0, rows) for t in tensors)


def some_of(rows: Tensor, added: Tensor | None) -> Tensor | None:
    """The given rows of what there may be."""
    return None if added is None else rows_of(rows, added)[0]


def together(parts: list[tuple[Tensor, Tensor]], rows: int, most: int) -> Tensor:
    """(B, O + X, D) from the calls that each served some rows; zeros where a row has no extra queries."""
    if len(parts) == 1 and parts[0][1].shape[1] == most:
        return parts[0][1]
    joined = parts[0][1].new_zeros(rows, most, parts[0][1].shape[2])
    for some, states in parts:
        joined[some, : states.shape[1]] = states
    return joined

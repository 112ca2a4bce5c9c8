"""Model calls: positions of some rows in, hidden states out. Three kinds, by what the rows' caches and strategies ask.

Letters: K rows of one call, C columns (the last one spare), Q queried, O observed, W window positions, D width. Where
the model's logits are shifted (Dream), the hidden state that predicts position i is that of position i - 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from starr.batch import Batch
from starr.canvas import Canvas
from starr.confidence import on_grid
from starr.model.spec import ModelSpec
from starr.model.transformer import KVBuffer, Transformer
from starr.observe import Places, places


def columns_of(tokens: Tensor) -> Tensor:
    """(1, C) int64."""
    return torch.arange(tokens.shape[1], device=tokens.device)[None]


def whole(net: Transformer, tokens: Tensor, length: Tensor, total: int, wanted: Tensor) -> Tensor:
    """(K, O, D): every position of every row (K, C), ``total`` in all, without a buffer."""
    tokens = tokens[:, :-1]
    if total == tokens.numel():
        return net(tokens, wanted=wanted)  # type: ignore[no-any-return]
    return net.packed(tokens, length, total, wanted)


def queried(
    net: Transformer, tokens: Tensor, length: Tensor, where: Places, buffer: KVBuffer, wanted: Tensor
) -> Tensor:
    """(K, O, D): only the queried positions; their K/V go into the buffer, those of padding to the spare slot."""
    attend = columns_of(tokens) < length[:, None]
    among = slots_of(where, tokens.shape[1]).gather(1, wanted)
    return net(tokens.gather(1, where.index), where.index, attend, buffer, where.index, among)  # type: ignore[no-any-return]


def measure(net: Transformer, canvas: Canvas, rows: Tensor, most: int, buffer: KVBuffer) -> Canvas:
    """The canvas with ``moved`` of the buffered rows (K,) filled in; ``most`` is their largest number of positions."""
    tokens, length, start = rows_of(rows, canvas.tokens, canvas.length, canvas.start)
    index = columns_of(tokens)
    attend = index < length[:, None]
    where = places(attend & (index >= start[:, None]), most).index
    moved = on_grid(net.moved(tokens.gather(1, where), where, attend, buffer).float())
    return replace(canvas, moved=canvas.moved.index_put((rows[:, None], where), moved))


def slots_of(where: Places, columns: int) -> Tensor:
    """(K, C) int64: the place of each column among the queried ones (0 for the others, which nobody asks for)."""
    rows, most = where.index.shape
    place = torch.arange(most, device=where.index.device).expand(rows, most)
    return torch.zeros((rows, columns), dtype=torch.int64, device=place.device).scatter_(1, where.index, place)


def shadowed(net: Transformer, tokens: Tensor, length: Tensor, index: Tensor, mask_id: int, wanted: Tensor) -> Tensor:
    """(K, O + W, D): a whole forward with a shadow block of masks behind it (WINO, arXiv:2507.18578).

    Shadow j stands at the position of window column ``index[:, j]`` and sees everything but that column itself; nobody
    else sees the shadow. So its state, the last W, gives the leave-one-out distribution of a held token.
    """
    rows, columns = tokens.shape
    width = index.shape[1]
    at = columns_of(tokens)
    valid, real = at < length[:, None], index < columns - 1
    seen = torch.cat([valid, torch.zeros_like(real)], dim=1)[:, None].expand(rows, columns, columns + width)
    not_own = at[:, None] != index[..., None]
    by_shadow = torch.cat([valid[:, None] & not_own, real[:, None].expand(rows, width, width)], dim=2)
    shadow = torch.arange(columns, columns + width, device=tokens.device).expand(rows, width)
    return net(  # type: ignore[no-any-return]
        torch.cat([tokens, torch.full_like(index, mask_id)], dim=1),
        torch.cat([at.expand(rows, columns), index], dim=1),
        attend=torch.cat([seen, by_shadow], dim=1),
        wanted=torch.cat([wanted, shadow], dim=1),
    )


def grown(buffer: KVBuffer | None, rows: list[int | None], slots: int, empty: KVBuffer) -> KVBuffer:
    """A buffer for other rows: each takes the place of an old row, or None and zeros; ``empty`` has the wanted size."""
    kept = [(new, old) for new, old in enumerate(rows) if old is not None]
    if buffer is not None and kept:
        width = min(slots, buffer.keys.shape[3])
        new, old = (torch.tensor(part, device=buffer.keys.device) for part in zip(*kept, strict=True))
        for target, source in ((empty.keys, buffer.keys), (empty.values, buffer.values)):
            target[:, new, :, :width] = source[:, old, :, :width]
    return empty


@dataclass(frozen=True, slots=True)
class Call:
    """What one step's forward works on."""

    canvas: Canvas
    batch: Batch
    window: Tensor  # (B, W) int64: columns of each row's window
    observed: Places  # (B, O): the positions to predict
    query: Tensor  # (B, C) bool, for rows with a buffer
    most_queried: int
    plain: int  # positions of all rows of whole forwards
    total: int  # positions of all rows
    buffer: KVBuffer | None


@dataclass(frozen=True, slots=True)
class States:
    """Hidden states of a step."""

    observed: Tensor  # (B * O, D)
    shadow: Tensor | None  # (K * W, D), of the rows that asked for it
    unguided: Tensor | None  # (B * O, D), with the prompt masked


def compute(net: Transformer, spec: ModelSpec, call: Call) -> States:
    """One forward for each kind of row in the batch (usually there is one kind), and one more for guidance."""
    canvas, batch = call.canvas, call.batch
    wanted = (call.observed.index - 1).clamp(min=0) if spec.shift else call.observed.index
    shadow = None
    parts: list[tuple[Tensor, Tensor]] = []
    if len(batch.plain):
        tokens, length, want = rows_of(batch.plain, canvas.tokens, canvas.length, wanted)
        parts.append((batch.plain, whole(net, tokens, length, call.plain, want)))
    if len(batch.buffered) and call.buffer is not None:
        tokens, length, want, query = rows_of(batch.buffered, canvas.tokens, canvas.length, wanted, call.query)
        where = places(query, call.most_queried)
        parts.append((batch.buffered, queried(net, tokens, length, where, call.buffer, want)))
    if len(batch.shadowed):
        tokens, length, want, window = rows_of(batch.shadowed, canvas.tokens, canvas.length, wanted, call.window)
        states = shadowed(net, tokens, length, window, spec.mask_id, want)
        parts.append((batch.shadowed, states[:, : wanted.shape[1]]))
        shadow = states[:, wanted.shape[1] :].flatten(0, 1)
    unguided = None
    if batch.guidance is not None:
        blind = canvas.tokens.masked_fill(canvas.column_index < canvas.start[:, None], spec.mask_id)
        unguided = whole(net, blind, canvas.length, call.total, wanted).flatten(0, 1)
    return States(together(parts, len(wanted)).flatten(0, 1), shadow, unguided)


def rows_of(rows: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
    """The given rows of each tensor; all of them is a no-op."""
    return tensors if len(rows) == len(tensors[0]) else tuple(t.index_select(0, rows) for t in tensors)


def together(parts: list[tuple[Tensor, Tensor]], rows: int) -> Tensor:
    """(B, O, D) from the calls that each served some rows."""
    if len(parts) == 1:
        return parts[0][1]
    joined = parts[0][1].new_zeros(rows, *parts[0][1].shape[1:])
    for some, states in parts:
        joined[some] = states
    return joined

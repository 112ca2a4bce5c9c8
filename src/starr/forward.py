"""Model calls: positions of some rows in, hidden states out. Three kinds, by what the rows' caches and strategies ask.

Letters: K rows of one call, C columns (the last one spare), Q queried, O observed, W window positions, D width. Where the
model's logits are shifted (Dream), the hidden state that predicts position i is that of position i - 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from starr.model.transformer import KVBuffer, Transformer
from starr.observe import Places


@dataclass(frozen=True, slots=True)
class Hidden:
    """Hidden states of one call and where each column's state lies."""

    states: Tensor  # (K, Q, D)
    slot: Tensor | None = None  # (K, C) int64: column -> place in ``states``; None where they are the same

    def at(self, columns: Tensor, shift: bool) -> Tensor:
        """(K, O, D): the states that predict ``columns`` (K, O); anything for the spare column."""
        source = (columns - 1).clamp(min=0) if shift else columns
        if self.slot is not None:
            source = self.slot.gather(1, source)
        source = source.clamp(max=self.states.shape[1] - 1)
        return self.states.gather(1, source[..., None].expand(-1, -1, self.states.shape[2]))


def columns_of(tokens: Tensor) -> Tensor:
    """(1, C) int64."""
    return torch.arange(tokens.shape[1], device=tokens.device)[None]


def whole(net: Transformer, tokens: Tensor, length: Tensor, ragged: bool) -> Hidden:
    """Every position of every row (K, C), without a buffer."""
    attend = columns_of(tokens)[:, :-1] < length[:, None] if ragged else None
    return Hidden(net(tokens[:, :-1], attend=attend))


def queried(net: Transformer, tokens: Tensor, length: Tensor, where: Places, buffer: KVBuffer) -> Hidden:
    """Only the queried positions; their K/V go into the buffer, those of padding to the spare slot that nobody sees."""
    asked = tokens.gather(1, where.index)
    attend = columns_of(tokens) < length[:, None]
    states = net(asked, where.index, attend=attend, buffer=buffer, slots=where.index)
    return Hidden(states, slots_of(where, tokens.shape[1]))


def slots_of(where: Places, columns: int) -> Tensor:
    """(K, C) int64: the place of each column among the queried ones (0 for those not queried, which nobody asks for)."""
    rows, most = where.index.shape
    place = torch.arange(most, device=where.index.device).expand(rows, most)
    return torch.zeros((rows, columns), dtype=torch.int64, device=place.device).scatter_(1, where.index, place)


def shadowed(net: Transformer, tokens: Tensor, length: Tensor, index: Tensor, mask_id: int) -> tuple[Hidden, Hidden]:
    """A whole forward with a shadow block of masks behind it (WINO, arXiv:2507.18578); the second result is the shadow's.

    Shadow j stands at the position of window column ``index[:, j]`` and sees everything but that column itself; nobody
    else sees the shadow. So its state gives the leave-one-out distribution of a held token.
    """
    rows, columns = tokens.shape
    width = index.shape[1]
    at = columns_of(tokens)
    valid, real = at < length[:, None], index < columns - 1
    seen = torch.cat([valid, torch.zeros_like(real)], dim=1)[:, None].expand(rows, columns, columns + width)
    not_own = at[:, None] != index[..., None]
    by_shadow = torch.cat([valid[:, None] & not_own, real[:, None].expand(rows, width, width)], dim=2)
    states = net(
        torch.cat([tokens, torch.full_like(index, mask_id)], dim=1),
        torch.cat([at.expand(rows, columns), index], dim=1),
        attend=torch.cat([seen, by_shadow], dim=1),
    )
    return Hidden(states[:, : columns - 1]), Hidden(states[:, columns:])


def grown(buffer: KVBuffer | None, rows: list[int | None], slots: int, empty: KVBuffer) -> KVBuffer:
    """A buffer for other rows: each takes the place of an old row, or None and zeros; ``empty`` has the wanted size."""
    kept = [(new, old) for new, old in enumerate(rows) if old is not None]
    if buffer is not None and kept:
        width = min(slots, buffer.keys.shape[3])
        new, old = (torch.tensor(part, device=buffer.keys.device) for part in zip(*kept, strict=True))
        for target, source in ((empty.keys, buffer.keys), (empty.values, buffer.values)):
            target[:, new, :, :width] = source[:, old, :, :width]
    return empty

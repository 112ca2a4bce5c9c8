"""The K/V buffer of the batch: one slot for each column of each row that has a cache."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from starr.model.network.transformer import KVBuffer, Transformer


def laid_out(
    net: Transformer, buffer: KVBuffer | None, before: Sequence[int], now: Sequence[int], slots: int
) -> KVBuffer | None:
    """A buffer for the rows ``now`` with K/V of those that were in it ``before`` (row ids); None without rows."""
    if not now:
        return None
    empty = KVBuffer.empty(net.shape, len(now), slots, net.embed.weight)
    kept = [(new, before.index(id)) for new, id in enumerate(now) if id in before]
    if buffer is not None and kept:
        width = min(slots, buffer.slots)
        new, old = (torch.tensor(part, device=buffer.keys.device) for part in zip(*kept, strict=True))
        for target, source in ((empty.keys, buffer.keys), (empty.values, buffer.values)):
            target[:, new, :, :width] = source[:, old, :, :width]
    return empty

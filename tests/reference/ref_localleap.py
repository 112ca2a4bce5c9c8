"""LocalLeap, word for word: look for an anchor around every position."""

from __future__ import annotations

from tests.reference.common import best_first, committing, masks_of


def localleap(row, tau, relaxed, radius):
    masks = masks_of(row.masked)
    anchors = [i for i in masks if row.confidence[i] >= tau]
    bars = [relaxed if any(abs(i - a) <= radius for a in anchors) else tau for i in range(row.width)]
    chosen = {i for i in masks if row.confidence[i] >= bars[i]}
    chosen |= set(best_first(masks, row.confidence)[:1])
    return {"action": committing(row.width, chosen), "threshold": bars}

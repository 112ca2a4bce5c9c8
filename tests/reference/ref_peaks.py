"""Peaks, word for word: a position is a peak if it comes first among the masks around it."""

from __future__ import annotations

from tests.reference.common import best_first, committing, masks_of


def peaks(row, high, low, radius):
    masks = masks_of(row.masked)
    chosen = set(best_first(masks, row.confidence)[:1])
    for i in masks:
        around = [j for j in masks if abs(i - j) <= radius]
        peak = best_first(around, row.confidence)[0] == i
        if row.confidence[i] >= high or (peak and row.confidence[i] >= low):
            chosen.add(i)
    return {"action": committing(row.width, chosen)}

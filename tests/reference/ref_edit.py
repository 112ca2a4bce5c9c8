"""Token-to-token editing, word for word."""

from __future__ import annotations

from tests.reference.common import best_first, committing, masks_of

REVISE = 3


def edit(row, tau, edit):
    masks = masks_of(row.masked)
    chosen = {i for i in masks if row.confidence[i] > tau} | set(best_first(masks, row.confidence)[:1])
    action = committing(row.width, chosen)
    for i in range(row.width):
        if row.held[i] and row.proposal[i] != row.tokens[i] and row.best[i] > edit:
            action[i] = REVISE
    return {"action": action}

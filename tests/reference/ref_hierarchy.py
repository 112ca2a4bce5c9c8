"""Hierarchical decoding, word for word: cut the masks into runs, take the best of each."""

from __future__ import annotations

from tests.reference.common import REVOKE, best_first, committing, masks_of


def runs_of(masks):
    runs = []
    for i in masks:
        if runs and runs[-1][-1] == i - 1:
            runs[-1].append(i)
        else:
            runs.append([i])
    return runs


def hierarchy(row, tau, low, revoke, revoke_below):
    masks = masks_of(row.masked)
    chosen = {i for i in masks if row.confidence[i] > tau}
    for run in runs_of(masks):
        best = best_first(run, row.confidence)[0]
        if row.confidence[best] > low:
            chosen.add(best)
    ordered = best_first(masks, row.confidence)
    chosen |= set(ordered[:1])
    doubted = [i for i in range(row.width) if revoke and row.held[i] and row.best[i] < revoke_below]
    for i in ordered:
        if len(chosen) < len(doubted) + 1:
            chosen.add(i)
    action = committing(row.width, chosen)
    least_certain = sorted(doubted, key=lambda i: (row.best[i], i))
    for i in least_certain[: max(len(chosen) - 1, 0)]:
        action[i] = REVOKE
    return {"action": action}

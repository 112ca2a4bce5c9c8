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


REVISE = 3


def hierarchy(row, tau, low, revoke, revoke_below):
    masks = masks_of(row.masked)
    doubted = [i for i in range(row.width) if revoke and row.held[i] and row.best[i] < revoke_below]
    open_ = sorted(masks + doubted)
    value = [row.confidence[i] if row.masked[i] else row.best[i] for i in range(row.width)]
    chosen = {i for i in open_ if value[i] > tau}
    for run in runs_of(open_):
        best = best_first(run, value)[0]
        if value[best] > low:
            chosen.add(best)
    for i in best_first(open_, value):
        if len(chosen) < len(doubted) + 1:
            chosen.add(i)
    action = committing(row.width, chosen & set(masks))
    for i in doubted:
        if i not in chosen:
            action[i] = REVOKE
        elif row.proposal[i] != row.tokens[i]:
            action[i] = REVISE
    return {"action": action}

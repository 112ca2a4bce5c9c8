"""ReMDM's deterministic form, word for word: three phases of one window."""

from __future__ import annotations

from tests.reference.common import KEEP, REVOKE, best_first, committing, masks_of


class RefReMDMForLLaDA:
    def __init__(self, share, loops):
        self.share, self.loops = share, loops

    def open(self):
        self.plan = None

    def step(self, row):
        if self.plan is None:
            first = int(sum(row.masked) * self.share)
            self.plan = ["commit"] * first + ["revoke", "commit"] * self.loops
        word = self.plan.pop(0) if self.plan else "commit"
        held = [i for i in range(row.width) if row.held[i]]
        if word == "revoke" and held:
            lowest = min(held, key=lambda i: (row.confidence[i], i))
            return [REVOKE if i == lowest else KEEP for i in range(row.width)]
        return committing(row.width, best_first(masks_of(row.masked), row.confidence)[:1])

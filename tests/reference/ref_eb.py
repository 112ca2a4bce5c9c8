"""EB-Sampler, word for word: try every prefix, keep the longest that fits."""

from __future__ import annotations

import math

from tests.reference.common import best_first, committing, masks_of


class RefEntropyBound:
    def __init__(self, gamma, unit, order):
        self.bound = gamma * math.log(2) if unit == "bits" else gamma
        self.order = order

    def open(self):
        pass

    def step(self, row):
        surest = [-e for e in row.entropy] if self.order == "entropy" else row.confidence
        ordered = best_first(masks_of(row.masked), surest)
        longest = 0
        for k in range(1, len(ordered) + 1):
            costs = [row.entropy[i] for i in ordered[:k]]
            if sum(costs) - max(costs) <= self.bound:
                longest = k
        return committing(row.width, ordered[:longest])

"""KLASS, word for word: the whole history of KL divergences."""

from __future__ import annotations

import math

from tests.reference.common import best_first, committing, masks_of, rounded, softmax

EPSILON = 1e-12


class RefKlass:
    def __init__(self, tau, kappa, history, pick, fallback):
        self.tau, self.kappa, self.history, self.pick, self.fallback = tau, kappa, history, pick, fallback

    def open(self):
        self.before, self.moves = None, []
        self.block, self.age = None, 0

    def step(self, row):
        now = [softmax(logits) for logits in row.distribution]
        before = self.before or [[0.0] * len(q) for q in now]
        self.moves.append([self.divergence(q, p) for q, p in zip(now, before, strict=True)])
        self.before = now
        masks = self.first_block(row)
        recent = self.moves[-self.history :]
        ready = [i for i in masks if row.confidence[i] > self.tau and all(kl[i] < self.kappa for kl in recent)]
        if len(self.moves) < self.history or self.age < self.history - 1:
            ready = []
        if not ready:
            return committing(row.width, best_first(masks, row.confidence)[: self.fallback])
        if self.pick == "confident":
            ready = best_first(ready, row.confidence)[:1]
        if self.pick == "steady":
            ready = best_first(ready, [-rounded(kl) for kl in self.moves[-1]])[:1]
        return committing(row.width, ready)

    def first_block(self, row):
        """Masks of the first block that has some; counts the steps that it has had."""
        masks = masks_of(row.masked)
        block = masks[0] // row.block
        self.age = self.age + 1 if block == self.block else 0
        self.block = block
        return [i for i in masks if i // row.block == block]

    @staticmethod
    def divergence(q, p):
        return sum(a * math.log((a + EPSILON) / (b + EPSILON)) for a, b in zip(q, p, strict=True))

"""Learn2PD, word for word: the filter over one block, the most confident mask, and where the canvas is cut."""

from __future__ import annotations

import math

from tests.decode.strategies.driver import Word
from tests.reference.common import best_first, committing


class RefLearn2PD:
    def __init__(self, tau, weights, ends):
        self.tau, self.ends = tau, ends
        self.w1, self.b1, self.w2, self.b2 = weights
        self.cut = None

    def open(self):
        pass

    def chances(self, scores):
        size, hidden = len(self.b2), len(self.b1)
        inner = [max(0.0, sum(scores[i] * self.w1[i][h] for i in range(size)) + self.b1[h]) for h in range(hidden)]
        logits = [sum(inner[h] * self.w2[h][i] for h in range(hidden)) + self.b2[i] for i in range(size)]
        return [round(4096 / (1 + math.exp(-logit))) / 4096 for logit in logits]

    def step(self, row):
        size = len(self.b2)
        start = row.masked.index(True) // size * size
        masks = [i for i in range(start, min(start + size, row.width)) if row.masked[i]]
        chances = self.chances([row.confidence[start + k] if start + k in masks else 1.0 for k in range(size)])
        accepted = [i for i in masks if chances[i - start] > self.tau]
        ending = [i for i in range(row.width) if row.masked[i] and row.proposal[i] in self.ends]
        sure = [i for i in accepted if i in ending]
        self.cut = -1
        if sure:
            self.cut = sure[0] + 1
        elif ending:
            self.cut = best_first(ending, row.confidence)[0] + 1
        return Word(committing(row.width, {*accepted, best_first(masks, row.confidence)[0]}))

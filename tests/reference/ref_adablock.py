"""AdaBlock-dLLM, word for word: choose the block's end in its first step, then Fast-dLLM's threshold."""

from __future__ import annotations

import math

from tests.decode.strategies.driver import Word
from tests.reference.common import best_first, committing


class RefAdaBlock:
    def __init__(self, tau, delimiter_tau, share, block, delimiters):
        self.tau, self.delimiter_tau, self.share, self.block = tau, delimiter_tau, share, block
        self.delimiters = delimiters
        self.length = None

    def open(self):
        pass

    def step(self, row):
        self.length = row.width if self.length is None else self.length
        end = self.end(row) if row.step == 0 else row.width
        masks = [i for i in range(end) if row.masked[i]]
        chosen = {i for i in masks if row.confidence[i] >= self.tau} | set(best_first(masks, row.confidence)[:1])
        return Word(committing(row.width, chosen), end=end)

    def end(self, row):
        ahead = min(math.floor(self.share * self.length), row.width)
        found = [i for i in range(ahead) if row.masked[i] and row.proposal[i] in self.delimiters]
        end = row.block if row.windows > 1 else self.block
        if found:
            best = best_first(found, row.confidence)[0]
            if row.confidence[best] >= self.delimiter_tau:
                end = best + 1
        return min(max(end, row.masked.index(True) + 1), row.width)

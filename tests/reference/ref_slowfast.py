"""SlowFast Sampling, word for word: cycles of exploring and filling."""

from __future__ import annotations

import statistics

from tests.reference.common import best_first, committing


class RefSlowFast:
    def __init__(self, explore, tau_reach, spread, tau_slow, tau_fast):
        self.explore, self.tau_reach, self.spread = explore, tau_reach, spread
        self.tau_slow, self.tau_fast = tau_slow, tau_fast

    def open(self):
        self.spans = []
        self.new_cycle(0)

    def new_cycle(self, start):
        self.start, self.end = start, None
        self.estimates, self.determined, self.taken = [], False, 0

    def step(self, row):
        exploring = self.taken < self.explore
        if not exploring and not any(row.masked[self.start : self.end]):
            self.spans.append((self.start, self.end))
            self.new_cycle(self.end)
            exploring = True
        if exploring:
            if not self.determined:
                self.estimate(row)
            self.taken += 1
            return self.fill(row, row.width, self.tau_slow)
        return self.fill(row, self.end, self.tau_fast)

    def estimate(self, row):
        reach = [i - self.start for i in range(self.start, row.width)
                 if row.masked[i] and row.confidence[i] >= self.tau_reach]  # fmt: skip
        increment = max(reach) + 1 if reach else 1
        self.estimates.append(min(max(1, self.start + increment), row.width))
        last = self.estimates[-2:]
        if len(last) == 2 and statistics.pstdev(last) < self.spread:
            self.end, self.determined = last[-1], True
        else:
            self.end = int(statistics.mean(last))

    def fill(self, row, end, tau):
        masks = [i for i in range(self.start, end) if row.masked[i]]
        sure = [i for i in masks if row.confidence[i] >= tau]
        chosen = sure if len(sure) > 1 else best_first(masks, row.confidence)[:1]
        return committing(row.width, chosen)

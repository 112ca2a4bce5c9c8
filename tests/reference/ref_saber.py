"""Saber, word for word: the confidences at commit by position, and exact fractions for their mean."""

from __future__ import annotations

import math
from fractions import Fraction

from tests.reference.common import COMMIT, KEEP, REVOKE, best_first, masks_of


class RefSaber:
    def __init__(self, least, backtrack):
        self.least, self.backtrack = least, backtrack
        self.committed = {}  # position -> confidence at its last commit
        self.previous = {}

    def open(self):
        """Nothing: a window only grows to the right, and everything in it is remembered."""

    def mean(self):
        values = [Fraction(c) for c in self.committed.values()]
        return sum(values) / len(values) if values else Fraction(1)

    def step(self, row):
        mean = self.mean()
        value = [row.confidence[i] if row.masked[i] else row.best[i] for i in range(row.width)]
        masks = masks_of(row.masked)
        committed = [i for i in masks if Fraction(value[i]) > mean]
        if len(committed) < self.least:
            committed = best_first(masks, value)[: self.least]
        for i in committed:
            self.committed[i] = value[i]
        decoded = set(committed) | {i for i in range(row.width) if row.held[i]}
        returned = set()
        if len(committed) < len(masks):
            k = len(committed)
            r = min(max(self.least // 2, math.ceil(k / self.backtrack)), k - 1)
            unknown = -math.inf if self.previous else 0.0  # in later blocks the code has -inf for what was outside
            rise = {i: value[i] - self.previous.get(i, unknown) for i in decoded}
            returned = set(sorted(decoded, key=lambda i: (rise[i], i))[:r])
        self.previous = dict(enumerate(value))
        return [self.action(row, i, i in decoded and i not in returned) for i in range(row.width)]

    @staticmethod
    def action(row, i, decoded_after):
        if row.masked[i]:
            return COMMIT if decoded_after else KEEP
        return REVOKE if row.held[i] and not decoded_after else KEEP

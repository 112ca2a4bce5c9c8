"""DAEDAL, word for word: actions, written tokens, how many masks to insert and behind which position."""

from __future__ import annotations

import math

from tests.reference.common import best_first, committing, masks_of


class RefDaedal:
    def __init__(self, options, ends):
        self.o, self.ends = options, ends

    def open(self):
        self.growing = True

    def step(self, row, context=math.inf):
        """Actions, how many positions to insert, behind which one, and whether they are end-of-text.

        ``context`` is the most positions that the row may have.
        """
        self.room = max(min(self.o.most, context) - row.width, 0)
        said = self.growing_step(row) if self.growing else None
        return said or self.decoding_step(row)

    def end_confidence(self, row):
        total, seen = 0.0, 0
        for i in reversed(range(row.width)):
            held = row.held[i] and row.tokens[i] in self.ends
            if seen < self.o.reach and (held or (row.masked[i] and row.proposal[i] in self.ends)):
                total, seen = total + (1.0 if held else row.best[i]), seen + 1
        return total / self.o.reach

    def block_of(self, row, masks):
        length = row.block if row.windows > 1 else self.o.block
        return [i for i in masks if i // length == masks[0] // length]

    def growing_step(self, row):
        nothing = committing(row.width, [])
        if self.end_confidence(row) < self.o.start_end and self.room > 0:
            return nothing, min(self.o.expand, self.room), row.width - 1, False
        self.growing = False
        tail = min(self.o.tail, self.room)
        return (nothing, tail, row.width - 1, True) if tail else None

    def decoding_step(self, row):
        masks = masks_of(row.masked)
        block = self.block_of(row, masks)
        chosen = {i for i in block if row.confidence[i] > self.o.tau} | set(best_first(block, row.confidence)[:1])
        weak = [i for i in block if i not in chosen and row.confidence[i] < self.o.expand_below]
        grow, at = 0, 0
        if weak and self.end_confidence(row) < self.o.keep_end:
            at = min(weak, key=lambda i: (row.confidence[i], i))
            grow = min(self.o.expand - 1, self.room)
        return committing(row.width, chosen), grow, at, False

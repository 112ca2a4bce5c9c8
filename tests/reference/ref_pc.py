"""PC-Sampler, word for word: score every mask by the printed formula and commit what the schedule gives."""

from __future__ import annotations

import math

from tests.reference.common import best_first, committing, masks_of


def frequencies(counts):
    """As in the released code: a token that was never seen counts as seen once."""
    return [max(count, 1) / sum(counts) for count in counts]


class RefPC:
    def __init__(self, frequency, decay, clip, steps):
        self.frequency, self.decay, self.clip, self.steps = frequency, decay, clip, steps

    def open(self):
        self.masks = None

    def step(self, row):
        self.masks = sum(row.masked) if self.masks is None else self.masks
        score = [
            math.exp(-self.decay * i) * min(self.clip, -c * math.log(min(self.frequency[token] + 1e-9, 1.0)))
            for i, (c, token) in enumerate(zip(row.confidence, row.proposal, strict=True))
        ]
        count = 1
        if self.steps is not None:
            share = max(1, self.steps // row.windows)
            count = self.masks // share + (1 if row.step < self.masks % share else 0)
        return committing(row.width, best_first(masks_of(row.masked), score)[:count])

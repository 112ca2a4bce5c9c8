"""TACG, word for word. The mask id, at minus infinity, has probability 0 before and after guidance."""

from __future__ import annotations

import math

from tests.reference.common import best_first, committing, masks_of, rounded, softmax


class RefTacg:
    def __init__(self, tau, floor, extra, share, decay, weight, rerank, steps, escape, fallback):
        self.tau, self.floor, self.extra, self.share = tau, floor, extra, share
        self.decay, self.weight, self.rerank = decay, weight, rerank
        self.steps, self.escape, self.fallback = steps, escape, fallback

    def open(self):
        self.average, self.proposals = None, []

    def step(self, row):
        self.average = self.average or [list(logits) for logits in row.distribution]
        score = [row.confidence[i] + rounded(self.rerank * self.bonus(row, i)) for i in range(row.width)]
        self.average = [[self.blend(e, x) for e, x in zip(es, xs, strict=True)]
                        for es, xs in zip(self.average, row.distribution, strict=True)]  # fmt: skip
        self.proposals.append(row.proposal)
        masks = masks_of(row.masked)
        wanted = self.candidates(row, masks, score)
        passed = [i for i in wanted if self.streak(i) >= self.steps or row.confidence[i] >= self.escape]
        return committing(row.width, passed or best_first(wanted, score)[:1])

    def bonus(self, row, i):
        guided = [-math.inf if x == -math.inf else e + (1 + self.weight) * (x - e)
                  for e, x in zip(self.average[i], row.distribution[i], strict=True)]  # fmt: skip
        token = row.proposal[i]
        return max(0.0, softmax(guided)[token] - softmax(self.average[i])[token])

    def blend(self, average, logit):
        return -math.inf if logit == -math.inf else self.decay * average + (1 - self.decay) * logit

    def candidates(self, row, masks, score):
        base = [i for i in masks if row.confidence[i] > self.tau]
        near = [i for i in masks if self.floor < row.confidence[i] <= self.tau]
        budget = min(self.extra, math.ceil(self.share * max(1, len(base))))
        wanted = base + best_first(near, score)[:budget]
        return wanted or best_first(masks, score)[: self.fallback]

    def streak(self, i):
        """Steps in a row, this one included, with the same proposal."""
        count = 0
        for proposals in reversed(self.proposals):
            if proposals[i] != self.proposals[-1][i]:
                break
            count += 1
        return count

"""CreditDecoding, word for word: one dictionary of credits per position."""

from __future__ import annotations

import math

from tests.decode.strategies.driver import Word
from tests.reference.common import argmax, best_first, committing, masks_of, rounded, softmax


class RefCredit:
    def __init__(self, tau, alpha, decay, gamma):
        self.tau, self.alpha, self.decay, self.gamma = tau, alpha, decay, gamma

    def open(self):
        self.credit = {}

    def step(self, row):
        self.credit = {place: value * self.decay for place, value in self.credit.items()}
        masks = masks_of(row.masked)
        for i in masks:
            place = (i, argmax(row.distribution[i]))
            self.credit[place] = self.credit.get(place, 0.0) + row.best[i] ** self.gamma
        token, confidence = [0] * row.width, [0.0] * row.width
        for i in masks:
            logits = enumerate(row.distribution[i])
            fused = [x + self.alpha * math.log(1 + self.credit.get((i, v), 0.0)) for v, x in logits]
            token[i], confidence[i] = argmax(fused), rounded(max(softmax(fused)))
        chosen = {i for i in masks if confidence[i] >= self.tau} | set(best_first(masks, confidence)[:1])
        return Word(committing(row.width, chosen), tokens=token)

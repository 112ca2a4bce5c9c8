"""ReMDM, word for word: one position at a time, one variant at a time."""

from __future__ import annotations

import math

from tests.reference.common import COMMIT, KEEP, REVOKE


class RefReMDM:
    def __init__(self, variant, eta, steps, t_on=0.55, t_off=0.05, alpha_on=0.9):
        self.variant, self.eta, self.steps = variant, eta, steps
        self.t_on, self.t_off, self.alpha_on = t_on, t_off, alpha_on

    def open(self):
        self.committed_with = {}

    def step(self, row):
        total = row.width if self.steps is None else max(1, self.steps // row.windows)
        if row.step >= total - 1:
            return [COMMIT if m else KEEP for m in row.masked]
        t, s = 1 - row.step / total, 1 - (row.step + 1) / total
        alpha_t, alpha_s, looping = self.schedule(t, s)
        action = []
        for i in range(row.width):
            sigma = self.sigma(row, i, alpha_t, alpha_s, looping)
            if row.masked[i]:
                chance = (alpha_s - (1 - sigma) * alpha_t) / (1 - alpha_t)
                action.append(COMMIT if row.noise[i] < chance else KEEP)
            else:
                action.append(REVOKE if row.held[i] and row.noise[i] < sigma else KEEP)
        for i, done in enumerate(action):
            if done == COMMIT:
                self.committed_with[i] = row.confidence[i]
        return action

    def schedule(self, t, s):
        if self.variant != "loop":
            return 1 - t, 1 - s, False
        if t > self.t_on:
            slope = self.alpha_on / (1 - self.t_on)
            return (1 - t) * slope, (1 - s) * slope, False
        if t <= self.t_off:
            return 1 - t * (1 - self.alpha_on) / self.t_off, 1 - s * (1 - self.alpha_on) / self.t_off, False
        return self.alpha_on, self.alpha_on, True

    def sigma(self, row, i, alpha_t, alpha_s, looping):
        most = min(1, (1 - alpha_s) / alpha_t) if alpha_t > 0 else 1
        if self.variant == "cap":
            return min(self.eta, most)
        if self.variant == "rescale":
            return self.eta * most
        if self.variant == "loop":
            return self.eta if looping else 0
        if not row.held[i]:
            return 0
        weights = {j: math.exp(-self.committed_with[j]) for j in range(row.width) if row.held[j]}
        return most * weights[i] / sum(weights.values())

"""WINO, word for word."""

from __future__ import annotations

from tests.reference.common import COMMIT, KEEP, REVOKE, best_first, masks_of


class RefWino:
    def __init__(self, tau_draft, tau_verify, share, least, most):
        self.tau_draft, self.tau_verify = tau_draft, tau_verify
        self.share, self.least, self.most = share, least, most

    def open(self):
        self.last_accept = 30

    def step(self, row):
        masks = masks_of(row.masked)
        accepted = [i for i in masks if row.confidence[i] > self.tau_draft]
        cap = min(max(int(self.share * len(masks)), self.least), self.most)
        if len(accepted) > cap:
            accepted = best_first(accepted, row.confidence)[:cap]
        if not accepted:
            accepted = best_first(masks, row.confidence)[:1]
        doubted = []
        if len(accepted) > 1:
            doubted = [i for i in range(row.width) if row.held[i] and row.shadow[i] < self.tau_verify]
            if len(doubted) >= self.last_accept:
                doubted = sorted(doubted, key=lambda i: (row.shadow[i], i))[: self.last_accept - 1]
        self.last_accept = len(accepted)
        return [COMMIT if i in accepted else REVOKE if i in doubted else KEEP for i in range(row.width)]

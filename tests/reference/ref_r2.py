"""R2-dLLM, word for word: a threshold, then three sweeps over the masks that are left."""

from __future__ import annotations

from tests.reference.common import best_first, committing, masks_of


class RefR2:
    def __init__(self, tau, cluster, decoded, tau_cluster, tau_run, pick, steps, tau_steady, steady):
        self.tau, self.cluster, self.decoded, self.tau_cluster = tau, cluster, decoded, tau_cluster
        self.tau_run, self.pick = tau_run, pick
        self.steps, self.tau_steady, self.steady = steps, tau_steady, steady

    def open(self):
        self.seen = {}  # position -> (proposal, confidences of the equal steps)

    def step(self, row):
        masks = masks_of(row.masked)
        chosen = {i for i in masks if row.confidence[i] >= self.tau} | set(best_first(masks, row.confidence)[:1])
        chosen |= self.clusters(row, [i for i in masks if i not in chosen])
        chosen |= self.runs(row, [i for i in masks if i not in chosen])
        chosen |= self.settled(row, masks)
        return committing(row.width, chosen)

    def clusters(self, row, left):
        found = set()
        for start in range(row.width - self.cluster + 1):
            masks = [i for i in range(start, start + self.cluster) if i in left]
            if not masks or self.cluster - len(masks) > self.decoded:
                continue
            if sum(row.confidence[i] for i in masks) / len(masks) >= self.tau_cluster:
                found |= set(masks)
        return found

    def runs(self, row, left):
        found, position = set(), 0
        while position < row.width:
            run = []
            while position in left and (not run or row.proposal[position] == row.proposal[run[0]]):
                run.append(position)
                position += 1
            if len(run) >= 2 and max(row.confidence[i] for i in run) > self.tau_run:
                found.add(best_first(run, row.confidence)[0] if self.pick == "confident" else run[len(run) // 2])
            if not run:
                position += 1
        return found

    def settled(self, row, masks):
        now = {}
        for i in masks:
            token, past = self.seen.get(i, (None, []))
            now[i] = (row.proposal[i], (past if token == row.proposal[i] else []) + [row.confidence[i]])
        self.seen = now
        value = {"last": lambda c: c[-1], "mean": lambda c: sum(c) / len(c), "max": max}[self.steady]
        return {i for i, (_, c) in now.items() if len(c) >= self.steps and value(c) >= self.tau_steady}

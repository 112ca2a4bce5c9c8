"""Slow transcription of the features and the budget of ``calibrated``, for one row as plain lists."""

from __future__ import annotations

import math

REACH = 4
HABIT_REACH = 3
LOWEST = -6.0


def clipped_log(value: float) -> float:
    return max(math.log(max(value, 1e-6)), LOWEST)


class RefFeatures:
    """The features of one row, step after step of one window."""

    def __init__(self, ends: list[int], habits: list[float]) -> None:
        self.ends, self.habits = ends, habits
        self.history: list[list[float]] = []
        self.proposals: list[list[int]] = []

    def step(self, row) -> list[dict[str, float]]:
        found = [self.position(row, i) for i in range(row.width)]
        self.history.append(list(row.confidence))
        self.proposals.append(list(row.proposal))
        return found

    def position(self, row, i: int) -> dict[str, float]:
        c = row.confidence[i]
        score = min(max(c, 1e-5), 1 - 1e-5)
        past = [step[i] for step in self.history[-3:]]
        masks = [j for j in range(row.width) if row.masked[j]]
        found = {
            "logit": math.log(score / (1 - score)) / 4,
            "confidence": c,
            "margin": row.margin[i],
            "entropy": math.log1p(row.entropy[i]),
            "ends": float(row.proposal[i] in self.ends),
            "last": past[-1] if past else c,
            "variance": c - sum(past) / len(past) if past else 0.0,
            "streak": math.log1p(self.streak(row, i)),
            "age": math.log1p(row.step),
            "decoded": sum(row.held) / max(sum(row.held) + len(masks), 1),
            "place": i / row.width,
            "masks": math.log1p(len(masks)),
        }
        for distance in (*range(-REACH, 0), *range(1, REACH + 1)):
            found[f"confidence{distance:+d}"] = self.known(row, i + distance)
            found[f"masked{distance:+d}"] = float(0 <= i + distance < row.width and row.masked[i + distance])
        for distance in range(-HABIT_REACH, HABIT_REACH + 1):
            found[f"habit{distance:+d}"] = self.habit(row, i + distance)
        for side, step in (("left", -1), ("right", 1)):
            run = self.run(row, i, step)
            found[f"run_{side}"] = math.log1p(len(run))
            found[f"doubt_{side}"] = max(sum(clipped_log(row.confidence[j]) for j in run), 4 * LOWEST) / 4
        return found

    def streak(self, row, i: int) -> int:
        count = 0
        for proposals in reversed(self.proposals):
            if proposals[i] != row.proposal[i]:
                break
            count += 1
        return count

    def known(self, row, j: int) -> float:
        if j < 0:
            return 1.0
        if j >= row.width:
            return 0.0
        return row.confidence[j] if row.masked[j] else 1.0

    def habit(self, row, j: int) -> float:
        if not 0 <= j < row.width or not row.masked[j] or row.proposal[j] >= len(self.habits):
            return 0.0
        return self.habits[row.proposal[j]]

    def run(self, row, i: int, step: int) -> list[int]:
        """The masks next to a position on one side."""
        found, j = [], i + step
        while 0 <= j < row.width and row.masked[j]:
            found.append(j)
            j += step
        return found


def ref_risk(stands: float, harms: float, harm: float) -> float:
    """The expected number of wrong commits, where a harmful one counts as ``harm`` others."""
    harmful = (1 - stands) * harms
    return harm * harmful + (1 - stands - harmful)


def ref_budget(risk: list[float], masked: list[bool], budget: float) -> list[bool]:
    """The least risky masks while the sum of their risks is <= budget."""
    order = sorted((i for i, m in enumerate(masked) if m), key=lambda i: (risk[i], i))
    chosen, total = set(), 0.0
    for i in order:
        total += risk[i]
        if total > budget:
            break
        chosen.add(i)
    return [i in chosen for i in range(len(masked))]

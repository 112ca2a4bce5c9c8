"""What several slow transcriptions need: plain Python over lists, ties to the lower position or token."""

from __future__ import annotations

import math

KEEP, COMMIT, REVOKE = 0, 1, 2


def best_first(positions: list[int], score: list[float]) -> list[int]:
    """Positions by descending score, ties to the lower position."""
    return sorted(positions, key=lambda i: (-score[i], i))


def committing(width: int, positions: set[int] | list[int]) -> list[int]:
    """Actions that commit the given positions."""
    return [COMMIT if i in positions else KEEP for i in range(width)]


def masks_of(masked: list[bool]) -> list[int]:
    return [i for i, m in enumerate(masked) if m]


def softmax(logits: list[float]) -> list[float]:
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    total = sum(weights)
    return [w / total for w in weights]


def argmax(values: list[float]) -> int:
    return max(range(len(values)), key=lambda v: (values[v], -v))


def rounded(value: float) -> float:
    """On the grid of 2^-16, halves to even."""
    return round(value * 65536) / 65536

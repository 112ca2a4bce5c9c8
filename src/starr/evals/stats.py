"""Honest numbers from few samples: intervals, paired comparisons, and summaries of an accuracy-parallelism curve.

All intervals are 95 % unless told. Proportions are in [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Z95 = 1.959963984540054
Interval = tuple[float, float]
Weights = NDArray[np.float64]


def wilson(right: int, n: int, z: float = Z95) -> Interval:
    """Wilson's score interval for ``right`` of ``n``; (0, 1) without samples."""
    if n == 0:
        return (0.0, 1.0)
    share, weight = right / n, z * z / n
    centre = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / n + weight / (4 * n)) / (1 + weight)
    low = 0.0 if right == 0 else max(0.0, centre - half)
    return (low, 1.0 if right == n else min(1.0, centre + half))


@dataclass(frozen=True, slots=True)
class Paired:
    """Two runs on the same samples: how much more often the first is right."""

    n: int
    only_first: int
    only_second: int
    difference: float
    interval: Interval
    p: float  # McNemar's, exact and two-sided

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.interval[1] - self.interval[0]


def paired(first: Sequence[bool], second: Sequence[bool], z: float = Z95) -> Paired:
    """Compare two runs sample by sample."""
    if len(first) != len(second):
        raise ValueError(f"paired runs need the same samples, got {len(first)} and {len(second)}")
    n = len(first)
    only_first = sum(a and not b for a, b in zip(first, second, strict=True))
    only_second = sum(b and not a for a, b in zip(first, second, strict=True))
    difference = (only_first - only_second) / n if n else 0.0
    interval = paired_interval(n, only_first, only_second, z)
    return Paired(n, only_first, only_second, difference, interval, mcnemar(only_first, only_second))


def paired_interval(n: int, only_first: int, only_second: int, z: float = Z95) -> Interval:
    """Bonett and Price's interval (2012) of a paired difference.

    It is Wald's with one sample added to each kind of disagreement, and keeps its coverage when disagreements are few.
    """
    up, down = (only_first + 1) / (n + 2), (only_second + 1) / (n + 2)
    half = z * math.sqrt((up + down - (up - down) ** 2) / (n + 2))
    return (max(-1.0, up - down - half), min(1.0, up - down + half))


def mcnemar(only_first: int, only_second: int) -> float:
    """McNemar's exact two-sided p: disagreements as tosses of a fair coin."""
    total, fewer = only_first + only_second, min(only_first, only_second)
    tail = sum(math.comb(total, i) for i in range(fewer + 1)) / math.pow(2, total - 1)
    return min(1.0, tail)


def sure(pairs: Sequence[Paired], points: float) -> bool:
    """Whether every difference is known within ``points`` percentage points: its whole interval is narrower.

    Stopping on width, never on sign, keeps the interval's coverage (Chow and Robbins 1965) for all but tiny n.
    """
    return bool(pairs) and all(pair.width * 100 < points for pair in pairs)


def percentile(values: Sequence[float], share: float) -> float:
    """Linear interpolation between the two nearest ranks."""
    ranked = sorted(values)
    at = share * (len(ranked) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (ranked[high] - ranked[low]) * (at - low)


def aup(points: Sequence[tuple[float, float]], best: float | None = None) -> float:
    """Area under the accuracy-parallelism curve (d3LLM): points are (tokens per forward, accuracy in percent).

    AUP = x1 y1 + sum of trapezoids of y W(y), W(y) = min(1, exp(-3 (1 - y / best))), x ascending; ``best`` is the
    highest accuracy of all strategies compared (of these points if None). Points over 5 below the first are dropped.
    """
    ranked = sorted(points)
    if not ranked:
        return 0.0
    top = max(y for _, y in ranked) if best is None else best
    if top <= 0:
        return 0.0
    kept = [(x, y) for x, y in ranked if y >= ranked[0][1] - 5]
    weighted = [(x, y * min(1.0, math.exp(-3 * (1 - y / top)))) for x, y in kept]
    area = kept[0][0] * kept[0][1]
    for (x0, y0), (x1, y1) in pairwise(weighted):
        area += (x1 - x0) * (y0 + y1) / 2
    return area


def pbx(points: Sequence[tuple[float, float]], x: float) -> float | None:
    """PBx (ParallelBench): the largest tokens per forward at which the mean score is still at least ``x``.

    Points are (tokens per forward, score in percent); between neighbours the score is linear. None if no point reaches
    ``x``.
    """
    ranked = sorted(points)
    found = [at for at, score in ranked if score >= x]
    for (x0, y0), (x1, y1) in pairwise(ranked):
        if min(y0, y1) < x <= max(y0, y1) and y0 != y1:
            found.append(x0 + (x - y0) / (y1 - y0) * (x1 - x0))
    return max(found) if found else None


def resampled(n: int, draws: int = 1000, seed: int = 0) -> Weights:
    """How often each of ``n`` items is drawn, (draws, n): the bootstrap's weights, the same for every run."""
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=draws).astype(np.float64)


def bootstrap(values: Sequence[float], over: Sequence[float] | None = None, draws: int = 1000) -> Interval:
    """The percentile bootstrap's interval of a mean, or of sum(values) / sum(over), over the items."""
    weights = resampled(len(values), draws)
    below = np.ones(len(values)) if over is None else np.asarray(over, dtype=np.float64)
    shares = (weights @ np.asarray(values, dtype=np.float64)) / (weights @ below)
    low, high = np.percentile(shares, (2.5, 97.5))
    return (float(low), float(high))

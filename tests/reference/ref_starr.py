"""STaRR for one row, position by position, in plain floats: Eq. 2 to 6 and both labels, as printed.

Nothing is shared with the fast code. A count of near misses belongs to a masked position and a Suspected Fast label to
a held token: each is gone when that state is.
"""

from __future__ import annotations

from dataclasses import dataclass

from starr.decode.strategies.starr import Starr
from tests.decode.strategies.driver import Row

KEEP, COMMIT, REVOKE = 0, 1, 2
TIE = 4e-6


@dataclass
class Said:
    """Thresholds, actions and reasons of one step, and whether any comparison was too close for float32."""

    threshold: list[float]
    action: list[int]
    label: list[int]
    tie: bool


def weight(distance: int, window: int) -> float:
    """1/4, 1/8, ... by distance, the farthest as much as the one before it; one neighbour alone has 1/2."""
    return 1 / 2**window if distance == window else 1 / 2 ** (distance + 1)


def temporal_variance(now: float, past: list[float], window: int) -> float:
    """Eq. 2."""
    total = 0.0
    for value in past[-window:]:
        total += value
    return now - total / window


def spatial_deviance(values: list[float], position: int, window: int, left: float, right: float) -> float:
    """Eq. 3 over [i - W_n, i + W_n] without i itself, padded at both ends."""
    mean = 0.0
    for distance in range(1, window + 1):
        before, after = position - distance, position + distance
        mean += weight(distance, window) * (values[before] if before >= 0 else left)
        mean += weight(distance, window) * (values[after] if after < len(values) else right)
    return values[position] - mean


def taken(value: float, kind: str) -> float:
    if kind == "absolute":
        return abs(value)
    return max(value, 0.0) if kind == "positive" else value


class RefStarr:
    """State of one window: every past confidence, counts of near misses, watched positions."""

    def __init__(self, options: Starr) -> None:
        self.options = options

    def open(self, row: Row) -> None:
        self.past: list[list[float]] = [[] for _ in range(row.width)]
        self.misses = [0] * row.width
        self.watched = [False] * row.width

    def seen(self, row: Row) -> list[float]:
        """c of every position; template tokens count as certain."""
        values = []
        for i in range(row.width):
            if row.frozen[i]:
                values.append(1.0)
            elif row.masked[i] or self.options.held_confidence == "own":
                values.append(row.confidence[i])
            else:
                values.append(row.best[i])
        return values

    def share(self, row: Row) -> float:
        """p by the decoded part of what is to be decoded."""
        early, middle, late = map(float, self.options.blend.split("/"))
        done, left = row.held.count(True), row.masked.count(True)
        if 100 * done < 20 * (done + left):
            return early
        return late if 100 * done > 80 * (done + left) else middle

    def base(self, values: list[float], i: int) -> float:
        """Eq. 5."""
        o = self.options
        if not o.temporal or len(self.past[i]) < o.temporal_window:
            return o.warmup_threshold
        return o.scale * taken(temporal_variance(values[i], self.past[i], o.temporal_window), o.variance)

    def neighbour(self, row: Row, values: list[float], i: int) -> float:
        """Eq. 6."""
        o = self.options
        deviance = taken(spatial_deviance(values, i, o.spatial_window, o.left_pad, o.right_pad), o.deviance)
        return 1 - deviance if row.masked[i] else deviance

    def threshold(self, row: Row, values: list[float], i: int) -> float:
        """Eq. 4 and the ablations."""
        if not self.options.spatial:
            return self.base(values, i)
        if not self.options.temporal:
            return self.neighbour(row, values, i)
        p = self.share(row)
        return p * self.base(values, i) + (1 - p) * self.neighbour(row, values, i)

    def step(self, row: Row) -> Said:
        values = self.seen(row)
        said = Said([self.threshold(row, values, i) for i in range(row.width)], [], [], False)
        for i in range(row.width):
            action, label = self.judge(row, i, values[i], said.threshold[i])
            said.action.append(action)
            said.label.append(label)
            gap = said.threshold[i] - values[i]
            edges = (0.0, self.options.slow_margin, -self.options.fast_margin)
            said.tie |= not row.frozen[i] and any(abs(gap - edge) < TIE for edge in edges)
            self.past[i].append(values[i])
        return said

    def judge(self, row: Row, i: int, c: float, tau: float) -> tuple[int, int]:
        if row.frozen[i]:
            return KEEP, 0
        action = KEEP
        if row.masked[i] and c > tau:
            action = COMMIT
        if not row.masked[i] and not c > tau:
            action = REVOKE
        if not self.options.responsive:
            return action, 0
        forced = self.slow(row, i, c, tau)
        changed = self.fast(row, i, c, tau)
        if changed:
            return REVOKE, 2
        if forced:
            return (COMMIT, 1) if row.masked[i] else (KEEP, 0)
        return action, 0

    def slow(self, row: Row, i: int, c: float, tau: float) -> bool:
        """Whether this is the t_max-th near miss in a row."""
        if not row.masked[i]:
            self.misses[i] = 0
        near = not c > tau and tau - c <= self.options.slow_margin
        self.misses[i] = self.misses[i] + 1 if near else 0
        if self.misses[i] >= self.options.patience:
            self.misses[i] = 0
            return True
        return False

    def fast(self, row: Row, i: int, c: float, tau: float) -> bool:
        """Whether a watched token's content changed; fresh narrow commits of the first steps become watched."""
        if row.masked[i] or row.step >= self.options.fast_steps:
            self.watched[i] = False
        changed = self.watched[i] and row.proposal[i] != row.tokens[i]
        if row.masked[i] and row.step < self.options.fast_steps and 0 < c - tau <= self.options.fast_margin:
            self.watched[i] = True
        return changed

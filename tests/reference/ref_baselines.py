"""The paper's baselines for one row, position by position."""

from __future__ import annotations

from tests.decode.strategies.driver import Row, Word


def ranked(scores: list[float], masked: list[bool]) -> list[int]:
    """Masked positions by falling score, ties to the lower position."""
    return sorted((i for i, m in enumerate(masked) if m), key=lambda i: (-scores[i], i))


def commit(row: Row, chosen: list[int]) -> list[int]:
    return [1 if i in chosen else 0 for i in range(row.width)]


class Ref:
    """A reference without memory; those with one draw it up at the first step of a window."""

    def open(self) -> None:
        pass

    def prepare(self, row: Row) -> None:
        pass

    def step(self, row: Row) -> Word:
        if row.step == 0:
            self.prepare(row)
        return Word(commit(row, self.chosen(row)))

    def chosen(self, row: Row) -> list[int]:
        raise NotImplementedError


class RefScheduled(Ref):
    """Top-k per step; the list of counts is drawn up when the window opens, as LLaDA does."""

    def __init__(self, signal: str, steps: int | None) -> None:
        self.signal, self.steps = signal, steps

    def prepare(self, row: Row) -> None:
        masks = row.masked.count(True)
        if self.steps is None:
            self.counts = [1] * masks
            return
        steps = max(self.steps // row.windows, 1)
        self.counts = [masks // steps] * steps
        for i in range(masks % steps):
            self.counts[i] += 1

    def chosen(self, row: Row) -> list[int]:
        order = ranked(getattr(row, self.signal), row.masked)
        return order[: self.counts[row.step]]


class RefDream(Ref):
    """Dream's time steps from 1 to eps; a step that would commit nothing commits one."""

    def __init__(self, signal: str, steps: int | None, eps: float) -> None:
        self.signal, self.steps, self.eps = signal, steps, eps

    def prepare(self, row: Row) -> None:
        steps = row.width if self.steps is None else max(self.steps // row.windows, 1)
        self.times = [1 - (1 - self.eps) * k / steps for k in range(steps + 1)]

    def chosen(self, row: Row) -> list[int]:
        scores = [-e for e in row.entropy] if self.signal == "entropy" else getattr(row, self.signal)
        order = ranked(scores, row.masked)
        return order[: max(int(len(order) * self.chance(row)), 1)]

    def chance(self, row: Row) -> float:
        """1 - s / t, 1 from the last step on."""
        if row.step >= len(self.times) - 2:
            return 1.0
        t, s = self.times[row.step], self.times[row.step + 1]
        return 1 - s / t


class RefOrigin(RefDream):
    """Every mask by its own chance; the one with the least noise if none."""

    def __init__(self, steps: int | None, eps: float) -> None:
        super().__init__("noise", steps, eps)

    def chosen(self, row: Row) -> list[int]:
        masks = [i for i, m in enumerate(row.masked) if m]
        drawn = [i for i in masks if row.noise[i] < self.chance(row)]
        return drawn or [min(masks, key=lambda i: row.noise[i])]


class RefThreshold(Ref):
    """``equal``: >= instead of >. ``quota``: steps of a block (0 for one a position); without it the best is added."""

    def __init__(self, tau: float, equal: bool = False, quota: int | None = None) -> None:
        self.tau, self.equal, self.quota = tau, equal, quota

    def chosen(self, row: Row) -> list[int]:
        order = ranked(row.confidence, row.masked)
        above = [i for i in order if row.confidence[i] > self.tau or (self.equal and row.confidence[i] == self.tau)]
        if self.quota is None:
            return order[:1] + above
        steps = min(self.quota or row.block, row.block)
        quotas = [row.block // steps + (1 if s < row.block % steps else 0) for s in range(steps)]
        quota = quotas[row.step] if row.step < steps else 1
        return above if len(above) >= quota else order[:quota]


class RefFactor(Ref):
    def __init__(self, factor: float, bug_compatible: bool) -> None:
        self.factor, self.bug_compatible = factor, bug_compatible

    def chosen(self, row: Row) -> list[int]:
        order = ranked(row.confidence, row.masked)
        count = self.released(row, order) if self.bug_compatible else self.printed(row, order)
        return order[:count]

    def printed(self, row: Row, order: list[int]) -> int:
        """The largest n with (n + 1)(1 - c_(n)) < f, at least 1."""
        fits = [n for n in range(1, len(order) + 1) if (n + 1) * (1 - row.confidence[order[n - 1]]) < self.factor]
        return max(fits, default=1)

    def released(self, row: Row, order: list[int]) -> int:
        """Stop before the first rank from 2 on that fails, but a failing last rank is committed with all others."""
        for n in range(2, len(order)):
            if row.confidence[order[n - 1]] < 1 - self.factor / (n + 1):
                return n - 1
        return len(order)


class RefDus(Ref):
    def __init__(self, base: int, skip: float) -> None:
        self.base, self.skip = base, skip

    def prepare(self, row: Row) -> None:
        self.levels = levels(row.width, self.base)
        self.round = -1

    def chosen(self, row: Row) -> list[int]:
        """One level, with all that earlier ones left; levels without any mask so far are passed over."""
        self.round += 1
        due = self.due(row)
        while not due:
            self.round += 1
            due = self.due(row)
        final = self.round >= len(self.levels) - 1
        return [i for i in due if final or row.confidence[i] >= self.skip]

    def due(self, row: Row) -> list[int]:
        return [i for level in self.levels[: self.round + 1] for i in level if row.masked[i]]


def levels(width: int, base: int) -> list[list[int]]:
    """Positions of each level of a window."""
    found: list[list[int]] = []
    left, stride = set(range(width)), width // base
    while stride >= 1:
        level = [i for i in sorted(left) if i % stride == 0]
        found.append(level)
        left -= set(level)
        stride //= base
    if left:
        found.append(sorted(left))
    if len(found) > 1 and len(found[-1]) < len(found[-2]):
        found[-2:] = [sorted(found[-2] + found[-1])]
    return found

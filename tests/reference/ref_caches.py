"""Which positions each cache queries, position by position, from sets and the history of held positions."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class RowState:
    """One row before a step, in plain Python. Positions are columns of the row, the prompt first."""

    length: int
    prompt: int
    frozen: set[int]  # prompt and template
    window: tuple[int, int] = (0, 0)
    step: int = 0  # in the window
    total: int = 0
    held_after: list[set[int]] = field(default_factory=list)  # D_0, D_1, ...: frozen or held after each window step
    masked: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)  # by the last step: committed, revised or revoked
    committed: int = 0  # how many of them are tokens now
    buffered: set[int] = field(default_factory=set)
    observed: set[int] = field(default_factory=set)  # since the window opened
    confidence: dict[int, float] = field(default_factory=dict)
    moved: dict[int, float] = field(default_factory=dict)

    @property
    def everything(self) -> set[int]:
        return set(range(self.length))

    @property
    def canvas(self) -> set[int]:
        return set(range(self.prompt, self.length))

    @property
    def inside(self) -> set[int]:
        return set(range(*self.window))


def due(step: int, interval: int) -> bool:
    return interval > 0 and step % interval == 0


def best(score: dict[int, float], among: set[int], count: int) -> list[int]:
    return sorted(among, key=lambda i: (-score.get(i, 0.0), i))[:count]


def none(row: RowState) -> set[int]:
    return row.everything


def prefix(row: RowState, refresh: int = 0) -> set[int]:
    if row.step == 0 or due(row.step, refresh):
        return row.everything
    return {i for i in row.everything if i >= row.window[0]}


def dual(row: RowState, refresh: int = 0) -> set[int]:
    return row.everything if row.step == 0 or due(row.step, refresh) else row.inside


def vicinity(row: RowState, refresh: int = 0, before: int = 16, after: int = 16, warmup: int = 4) -> set[int]:
    if row.step == 0 or due(row.step, refresh) or row.total < warmup:
        return row.everything
    return {i for i in row.everything if row.window[0] - before <= i < row.window[1] + after}


def not_cached(row: RowState) -> set[int]:
    """Everything outside D_{i-2}, where a position revoked since counts as outside."""
    return row.everything - (row.held_after[row.step - 2] & row.held_after[row.step - 1])


def dkv(row: RowState, refresh: int = 8) -> set[int]:
    return row.everything if row.step <= 1 or row.step % refresh == 0 else not_cached(row)


def dkv_prefill(row: RowState, prompt_refresh: int = 0) -> set[int]:
    return row.everything if due(row.total, prompt_refresh) else row.canvas


def dkv_pd(row: RowState, refresh: int = 8, prompt_refresh: int = 0) -> set[int]:
    if due(row.total, prompt_refresh):
        return row.everything
    return row.canvas & dkv(row, refresh)


def dkv_greedy(row: RowState, refresh: int = 2, window: int = 4) -> set[int]:
    if row.step <= 1 or row.step % refresh == 0:
        return row.everything
    open_ = sorted(row.masked & row.inside)
    chosen = set(row.written)
    for position in best(row.confidence, set(open_), max(1, row.committed)):
        place = open_.index(position)
        chosen |= set(open_[max(0, place - window // 2) : place + window // 2 + 1])
    return chosen


def adaptive(row: RowState, prompt_refresh: int = 50, refresh: int = 7, share: float = 0.25) -> set[int]:
    chosen = set(best(row.moved, row.canvas, max(1, int((row.length - row.prompt) * share))))
    if row.total % refresh == 0:
        chosen |= row.canvas
    if row.total % prompt_refresh == 0:
        chosen |= row.everything - row.canvas
    return chosen


RULES = {
    "none": none,
    "prefix": prefix,
    "dual": dual,
    "vicinity": vicinity,
    "dkv": dkv,
    "dkv-prefill": dkv_prefill,
    "dkv-pd": dkv_pd,
    "dkv-greedy": dkv_greedy,
    "adaptive": adaptive,
}


def queried(name: str, options: dict[str, float], row: RowState, shift: bool) -> set[int]:
    """The rule and what every plan adds to it."""
    chosen = RULES[name](row, **options)
    chosen |= row.everything - row.buffered
    chosen |= row.inside - row.observed - row.frozen
    chosen |= row.written
    if shift:
        chosen |= {i - 1 for i in chosen if i in row.inside}
    return chosen & row.everything

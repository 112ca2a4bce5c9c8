"""A small random world for strategies: ragged rows, frozen tokens, rows at different steps of different windows.

``compare`` runs a strategy over a batch and a slow reference beside each row; ``play`` runs a strategy alone, so that
two strategies can be compared over the same signals. Actions are applied as decided, without ``enforce``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from hypothesis import strategies as st
from torch import Tensor

from starr.decode.strategies.base import Strategy
from starr.decode.view import Carry, Decision, StepView

MASK = 0
VOCABULARY = 7
GRID = 2.0**-16


@dataclass
class Row:
    """One row's view as plain lists of its own width; the distribution's logits as a list of lists."""

    tokens: list[int]
    masked: list[bool]
    frozen: list[bool]
    proposal: list[int]
    confidence: list[float]
    best: list[float]
    step: int
    width: int
    windows: int
    block: int
    entropy: list[float]
    margin: list[float]
    distribution: list[list[float]]
    shadow: list[float]
    noise: list[float]

    @property
    def held(self) -> list[bool]:
        return [not (m or f) for m, f in zip(self.masked, self.frozen, strict=True)]


@dataclass
class Word:
    """What a reference says of its row; fields that are None are not compared."""

    action: list[int]
    tokens: list[int] | None = None  # compared where committed or revised
    threshold: list[float] | None = None  # compared where masked
    end: int | None = None


class Reference(Protocol):
    """A slow transcription of one strategy for one row."""

    def open(self) -> None:
        """Called before the first step of every window."""

    def step(self, row: Row) -> Word | list[int]:
        """What it says of its row; a list is the actions."""


class World:
    """Random signals over a batch of windows; the same seed and widths give the same signals whatever is decided.

    Logits are float64, so that what is computed from them agrees with Python's floats far below every comparison.

    Coarse: confidences on a grid of 1/16, with many ties and exact hits; otherwise the probabilities of the logits.
    """

    def __init__(self, seed: int, widths: list[int], coarse: bool = True, block: int | None = None) -> None:
        self.random = torch.Generator().manual_seed(seed)
        self.widths = torch.tensor(widths)
        self.size = (len(widths), max(widths) + 1)
        self.coarse = coarse
        self.block = self.widths if block is None else torch.full_like(self.widths, block)
        self.windows = torch.randint(1, 4, (len(widths),), generator=self.random)
        self.inside = torch.arange(self.size[1]) < self.widths[:, None]
        self.step = torch.zeros(len(widths), dtype=torch.int64)
        self.tokens = torch.zeros(self.size, dtype=torch.int64)
        self.masked = torch.zeros(self.size, dtype=torch.bool)
        self.frozen = torch.ones(self.size, dtype=torch.bool)
        self.logits = self.draw_logits()
        self.reopen(torch.ones(len(widths), dtype=torch.bool))

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.random)

    def on_grid(self, values: Tensor) -> Tensor:
        grid = 2.0**-4 if self.coarse else GRID
        return ((values / grid).round() * grid).float()

    def draw_logits(self) -> Tensor:
        logits = (self.uniform(*self.size, VOCABULARY).double() * 12).round() / 2
        logits[..., MASK] = -torch.inf
        return logits

    def reopen(self, rows: Tensor) -> None:
        """Start a new window in the given rows: some tokens frozen, all others masked, at least one."""
        frozen = (self.uniform(*self.size) < 0.15) | ~self.inside
        first = torch.randint(0, 10**6, (self.size[0],), generator=self.random) % self.widths
        frozen[torch.arange(self.size[0]), first] = False
        self.frozen = torch.where(rows[:, None], frozen, self.frozen)
        self.masked = torch.where(rows[:, None], ~frozen, self.masked)
        self.tokens = torch.where(rows[:, None], torch.where(frozen, 1, MASK), self.tokens)
        self.step = torch.where(rows, 0, self.step)

    def view(self) -> StepView:
        """The next step's view: predictions mostly stay, sometimes change."""
        stay = self.uniform(*self.size) < 0.7
        self.logits = torch.where(stay[..., None], self.logits, self.draw_logits())
        probs = self.logits.softmax(-1)
        best, proposal = probs.max(-1)
        own = probs.gather(-1, self.tokens[..., None])[..., 0]
        top = probs.topk(2, dim=-1).values
        entropy = -(probs * (probs + 1e-30).log()).sum(-1)
        lift = 0.2 * self.uniform(*self.size) if self.coarse else 0.0
        best = self.on_grid((best + lift).clamp(0, 1))
        return StepView(
            tokens=self.tokens, masked=self.masked, frozen=self.frozen, proposal=proposal,
            confidence=torch.where(self.masked, best, self.on_grid(own)), best=best, step=self.step,
            width=self.widths, windows=self.windows, block=self.block,
            entropy=self.on_grid(entropy), margin=self.on_grid(top[..., 0] - top[..., 1]),
            distribution=self.logits, extras={"shadow": self.on_grid(self.uniform(*self.size))},
            noise=self.uniform(*self.size),
        )  # fmt: skip

    def apply(self, decision: Decision, view: StepView) -> Tensor:
        """Do what was decided; rows (B,) bool that have no masks left begin a new window."""
        written = view.proposal if decision.tokens is None else decision.tokens
        writes = (decision.action == 1) | (decision.action == 3)
        self.tokens = torch.where(writes, written, self.tokens)
        self.masked = (self.masked & (decision.action != 1)) | (decision.action == 2)
        self.tokens = torch.where(self.masked, MASK, self.tokens)
        self.step = self.step + 1
        closed = ~self.masked.any(1)
        self.reopen(closed)
        return closed


def carried(strategy: Strategy, view: StepView, carry: Carry | None) -> Carry:
    """The memory for this step: begun anew in rows that open a window, except what the strategy keeps."""
    fresh = strategy.begin(view)
    if carry is None:
        return fresh
    opened = view.step == 0
    return {
        name: old if name in strategy.keeps else torch.where(opened.view(-1, *[1] * (old.dim() - 1)), fresh[name], old)
        for name, old in carry.items()
    }


def row_of(view: StepView, index: int) -> Row:
    """One row of a view as plain lists."""
    width = int(view.width[index])
    values = {}
    for name in Row.__dataclass_fields__:
        value = view.extras[name] if name in view.extras else getattr(view, name)
        values[name] = value[index, :width].tolist() if value.dim() > 1 else int(value[index])
    return Row(**values)


def legal(decision: Decision, view: StepView) -> bool:
    """Commits only on masks, revocations and revisions only on held tokens."""
    commit, other = decision.action == 1, decision.action > 1
    return not bool((commit & ~view.masked).any() or (other & ~view.held).any())


def check_row(index: int, decision: Decision, view: StepView, word: Word) -> None:
    width = int(view.width[index])
    action = decision.action[index, :width].tolist()
    assert action == word.action, f"row {index}, step {int(view.step[index])}"
    if word.tokens is not None:
        said = decision.tokens[index, :width].tolist()
        assert all(said[i] == word.tokens[i] for i in range(width) if action[i] in (1, 3))
    if word.threshold is not None:
        bars = decision.threshold[index, :width].tolist()
        assert all(abs(bars[i] - word.threshold[i]) < 1e-6 for i in range(width) if view.masked[index, i])
    if word.end is not None:
        assert int(decision.end[index]) == word.end


def run(strategy: Strategy, world: World, steps: int = 12) -> Iterator[tuple[StepView, Decision]]:
    """Every step's view and decision, which is applied afterwards."""
    carry: Carry | None = None
    for _ in range(steps):
        view = world.view()
        decision, carry = strategy.decide(view, carried(strategy, view, carry))
        assert legal(decision, view)
        yield view, decision
        world.apply(decision, view)


def compare(strategy: Strategy, make: Callable[[], Reference], world: World, steps: int = 12) -> None:
    """Assert that a strategy and its reference agree in every row at every step."""
    references = [make() for _ in world.widths]
    for view, decision in run(strategy, world, steps):
        for index, reference in enumerate(references):
            row = row_of(view, index)
            if row.step == 0:
                reference.open()
            word = reference.step(row)
            check_row(index, decision, view, word if isinstance(word, Word) else Word(word))


def play(strategy: Strategy, world: World, steps: int = 12) -> list[Tensor]:
    """The actions (B, W) of every step of a strategy alone."""
    return [decision.action for _, decision in run(strategy, world, steps)]


def same(first: list[Tensor], second: list[Tensor]) -> bool:
    """Whether two plays took the same actions."""
    return len(first) == len(second) and all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def steps_to_close(strategy: Strategy, world: World) -> list[int]:
    """Steps until every row's first window has closed, at most twice the widest."""
    taken = torch.zeros_like(world.step)
    for count, (view, _) in enumerate(run(strategy, world, 2 * world.size[1] + 1)):
        taken[(view.step == 0) & (taken == 0)] = count
        if bool(taken.all()):
            return taken.tolist()
    raise AssertionError(f"rows did not close: {taken.tolist()}")


def closes_in_time(strategy: Strategy, world: World) -> bool:
    """Whether every row's first window closes within as many steps as it has positions."""
    return all(s <= w for s, w in zip(steps_to_close(strategy, world), world.widths.tolist(), strict=True))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Hypothesis strategy: batches of up to four rows, one to twelve wide, on a coarse (many ties) or fine grid."""
    widths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    return World(draw(st.integers(0, 2**31)), widths, draw(st.booleans()))

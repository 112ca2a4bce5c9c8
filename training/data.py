"""Endless training batches: all tasks, templates, texts with holes and arithmetic drills.

Rows of one length make a batch, so that nothing is padded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields
from random import Random

import torch
from tokenizers import Tokenizer

from starr.evals.tasks import grids, lines, list_functions, word_problems
from starr.evals.tasks.word_steps import TIERS
from training.noise import Batch
from training.rows import Row, RowMaker

ABOUT_BOTH = ("together", "in total", "ahead of", "how many more")  # in questions about two people's amounts
MANY = 10**9
MOST_ROWS = 64  # of a batch: the few rows of an unusual length must not wait for ever
LINES = {
    "copied": ("copy", "remove"),
    "reversed": ("reverse",),
    "placed": ("insert", "replace"),
    "sorted": ("sort",),
    "any": ("insert-any", "remove-any"),
    "swapped": ("replace-any",),
    "shuffled": ("shuffle",),
}
HOLE_GRAIN = 8  # nothing fills such a row up, so only some lengths are taken


@dataclass(frozen=True)
class Mix:
    """Weights of the kinds of rows.

    ``two`` are word problems that ask for two people's amounts. From ``copied`` to ``shuffled`` they are lines, as
    ``LINES`` groups them.
    """

    drills: float = 3
    short: float = 7
    middle: float = 8
    long: float = 14
    two: float = 5
    small: float = 5
    functions: float = 9
    copied: float = 9
    reversed: float = 18
    placed: float = 22
    sorted: float = 12
    any: float = 16
    swapped: float = 18
    shuffled: float = 22
    latin: float = 9
    sudoku: float = 6
    templates: float = 20
    holes: float = 3


class RowSource:
    """Draws rows; one random state per stream, so that two seeds never share problems."""

    def __init__(self, tokenizer: Tokenizer, seed: int, mix: Mix, *, longer: bool = True) -> None:
        self.rng = Random(seed)
        self.maker = RowMaker(tokenizer, self.rng, longer=longer)
        tiers = {tier: word_problems.generate(seed + place, MANY, tiers=(tier,)) for place, tier in enumerate(TIERS)}
        problems = word_problems.generate(seed + 9, MANY)
        small = word_problems.generate_small(seed, MANY)
        either = (next(small if self.rng.random() < 0.4 else problems) for _ in range(MANY))
        two = (problem for problem in problems if any(word in problem.prompt for word in ABOUT_BOTH))
        make = self.maker.problem_row
        self.streams: dict[str, Iterator[Row]] = {
            "drills": (self.maker.drill_row() for _ in range(MANY)),
            "short": map(make, tiers["2-3"]),
            "middle": map(make, tiers["4-5"]),
            "long": map(make, tiers["6-8"]),
            "two": map(make, two),
            "small": map(make, small),
            "functions": map(make, list_functions.generate(seed, MANY)),
            **{name: map(make, lines.generate(seed, MANY, kinds=kinds)) for name, kinds in LINES.items()},
            "latin": map(make, grids.generate(seed, MANY, kinds=("latin",))),
            "sudoku": map(make, grids.generate(seed + 1, MANY, kinds=("sudoku",))),
            "templates": map(self.maker.template_row, (problem for problem in either if problem.steps)),
            "holes": (row for row in map(self.maker.hole_row, either) if len(row.tokens) % HOLE_GRAIN == 0),
        }
        self.names = [part.name for part in fields(mix)]
        self.weights = [getattr(mix, name) for name in self.names]

    def draw(self) -> Row:
        return next(self.streams[self.rng.choices(self.names, self.weights)[0]])


def batches(source: RowSource, tokens_per_step: int) -> Iterator[Batch]:
    """Batches of rows of one length, each as soon as its bucket is full."""
    buckets: dict[int, list[Row]] = defaultdict(list)
    while True:
        row = source.draw()
        bucket = buckets[len(row.tokens)]
        bucket.append(row)
        if len(bucket) == MOST_ROWS or len(bucket) * len(row.tokens) >= tokens_per_step - len(row.tokens):
            yield collate(buckets.pop(len(row.tokens)))


def collate(rows: list[Row]) -> Batch:
    return Batch(*(torch.tensor([getattr(row, part.name) for row in rows]) for part in fields(Batch)))

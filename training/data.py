"""Endless training batches: both tasks and arithmetic drills, in buckets of equal length so that nothing is padded.

A row is a prompt, an answer and end-of-text up to the row's length, so canvas lengths vary by themselves. ``maskable``
says which tokens may be masked: the whole canvas of a problem, only the results of a drill.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields
from random import Random

import torch
from tokenizers import Tokenizer

from starr.evals import list_functions, word_problems
from starr.evals.problem import Problem
from starr.evals.word_patterns import WORDINGS
from starr.evals.word_problems import Story
from starr.evals.word_steps import BOTH, LARGEST_OF_TWO, LEAST, SIGNS, Step, draw_steps
from training.noise import Batch
from training.tokenizer import BOS, EOS, render

SPACE = "Ġ"  # how byte-level tokens spell it
GRAIN = 16
DRILL_LENGTH = 96
ABOUT_BOTH = ("together", "in total", "ahead of", "how many more")  # in questions about two people's amounts
BARE = 0.3  # share of drills without words
LONG = ((224, 0.15), (320, 0.01))  # row length and share of rows: a canvas of 128 must not tell how long its answer is


@dataclass(frozen=True)
class Mix:
    """Shares of rows: drills, list-functions among the rest; among word-problems those of one or two steps, those that
    ask for two people's amounts, and any."""

    drills: float = 0.1
    functions: float = 0.2
    short: float = 0.05
    both: float = 0.15


@dataclass(frozen=True)
class Row:
    """One row of a ``Batch``; ``least`` is half of a drill's results, which do not depend on one another."""

    tokens: list[int]
    maskable: list[bool]
    digits: list[bool]
    fill: list[bool]
    least: int = 1


class RowSource:
    """Draws rows; one random state per stream, so that two seeds never share problems."""

    def __init__(self, tokenizer: Tokenizer, seed: int) -> None:
        self.tokenizer, self.rng = tokenizer, Random(seed)
        self.eos, self.bos = tokenizer.token_to_id(EOS), tokenizer.token_to_id(BOS)
        self.digits = {tokenizer.token_to_id(space + digit) for space in ("", SPACE) for digit in "0123456789"}
        many = 10**9
        self.problems = word_problems.generate(seed, many)
        self.short = word_problems.generate(seed, many, steps=(1, 2))
        self.both = (problem for problem in self.problems if any(word in problem.prompt for word in ABOUT_BOTH))
        self.functions = list_functions.generate(seed, many)

    def draw(self, mix: Mix) -> Row:
        if self.rng.random() < mix.drills:
            return self.drill_row()
        if self.rng.random() < mix.functions:
            return self.problem_row(next(self.functions))
        draw = self.rng.random() - mix.short
        return self.problem_row(next(self.short if draw < 0 else self.both if draw < mix.both else self.problems))

    def problem_row(self, problem: Problem) -> Row:
        prompt = self.tokenizer.encode(render(problem.prompt)).ids
        answer = self.tokenizer.encode(problem.answer).ids
        length = self.row_length(len(prompt) + len(answer) + 1)
        rest = length - len(prompt) - len(answer)
        told = [False] * len(prompt)
        return Row(
            tokens=prompt + answer + [self.eos] * rest,
            maskable=told + [True] * (len(answer) + rest),
            digits=told + [token in self.digits for token in answer] + [False] * rest,
            fill=told + [False] * len(answer) + [True] * rest,
        )

    def row_length(self, least: int) -> int:
        """Mostly the next multiple of 16 or up to two more, now and then a long row."""
        draw = self.rng.random()
        for length, share in LONG:
            if draw < share and least <= length:
                return length
            draw -= share
        return GRAIN * (-(-least // GRAIN) + self.rng.randint(0, 2))

    def drill_row(self) -> Row:
        """Sums one after another; only their results may be masked."""
        tokens, maskable = [self.bos], [False]
        while True:
            parts = [self.tokenizer.encode(text).ids for text in drill(self.rng)]
            if len(tokens) + sum(map(len, parts)) > DRILL_LENGTH:
                break
            for place, part in enumerate(parts):
                tokens += part
                maskable += [place == 1] * len(part)
        rest = DRILL_LENGTH - len(tokens)
        none = [False] * DRILL_LENGTH
        return Row(tokens + [self.eos] * rest, maskable + [False] * rest, none, none, sum(maskable) // 2)


def drill(rng: Random) -> tuple[str, str, str]:
    """A random sum as (before, result, behind): bare, or in a sentence as answers have it."""
    kind = rng.choice(list(SIGNS))
    left, right, result = draw_sum(rng, kind)
    if rng.random() < BARE:
        return f" {left} {SIGNS[kind]} {right} =", f" {result}", "."
    step = Step(kind, left, right, result, rng.random() < 0.5)
    words = Story.draw(rng).words(step, [step, step])
    before, _, behind = rng.choice(WORDINGS[kind]).format_map(words).partition(f"= {result}")
    return f" {before}=", f" {result}", behind


def draw_sum(rng: Random, kind: str) -> tuple[int, int, int]:
    """left, right, result of a step of ``word-problems``; the sums of two amounts come often, being learnt last."""
    if kind in BOTH or (SIGNS[kind] in "+-" and rng.random() < 0.3):
        a = rng.randint(LEAST, LARGEST_OF_TWO - LEAST)
        b = rng.randint(LEAST, LARGEST_OF_TWO - a)
        return (a, b, a + b) if SIGNS[kind] == "+" else (a + b, b, a)
    steps = None
    while steps is None:
        steps = draw_steps(rng, [kind])
    return steps[0].left, steps[0].right, steps[0].result


def batches(source: RowSource, tokens_per_step: int, mix: Mix) -> Iterator[Batch]:
    """Batches of rows of one length, each as soon as its bucket is full."""
    buckets: dict[int, list[Row]] = defaultdict(list)
    while True:
        row = source.draw(mix)
        bucket = buckets[len(row.tokens)]
        bucket.append(row)
        if len(bucket) * len(row.tokens) >= tokens_per_step - len(row.tokens):
            yield collate(buckets.pop(len(row.tokens)))


def collate(rows: list[Row]) -> Batch:
    return Batch(*(torch.tensor([getattr(row, part.name) for row in rows]) for part in fields(Batch)))

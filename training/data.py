"""Endless training batches: both tasks and arithmetic drills, in buckets of equal length so that nothing is padded.

A row is a prompt, an answer and end-of-text up to the row's length, so canvas lengths vary by themselves. ``maskable``
says which tokens may be masked: the whole canvas of a problem, only the results of a drill.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from starr.evals import list_functions, word_problems
from starr.evals.problem import Problem
from starr.evals.word_patterns import WORDINGS
from starr.evals.word_problems import Story
from starr.evals.word_steps import SIGNS, Step
from training.tokenizer import BOS, EOS, render

SPACE = "Ġ"  # how byte-level tokens spell it
GRAIN = 16
DRILL_LENGTH = 96
BARE = 0.3  # share of drills without words
LONG = ((192, 0.04), (320, 0.01))  # row length and share of rows: keeps canvases of 128 and 256 in distribution


@dataclass(frozen=True)
class Mix:
    """Shares of rows: drills, list-functions among the rest, problems of one or two steps among word-problems."""

    drills: float = 0.18
    functions: float = 0.35
    short: float = 0.2


@dataclass(frozen=True)
class Row:
    """``least`` masks are always set: half of a drill's, since its results do not depend on one another.

    ``late`` are the digits of an answer, which half of the rows lose from the right (see ``mask_tokens``).
    """

    tokens: list[int]
    maskable: list[bool]
    late: list[bool]
    least: int = 1


@dataclass(frozen=True)
class Batch:
    tokens: Tensor  # (B, L) int64
    maskable: Tensor  # (B, L) bool
    late: Tensor  # (B, L) bool
    least: Tensor  # (B,) int64


class RowSource:
    """Draws rows; one random state per stream, so that two seeds never share problems."""

    def __init__(self, tokenizer: Tokenizer, seed: int) -> None:
        self.tokenizer, self.rng = tokenizer, Random(seed)
        self.eos, self.bos = tokenizer.token_to_id(EOS), tokenizer.token_to_id(BOS)
        self.digits = {tokenizer.token_to_id(space + digit) for space in ("", SPACE) for digit in "0123456789"}
        many = 10**9
        self.problems = word_problems.generate(seed, many)
        self.short = word_problems.generate(seed, many, steps=(1, 2))
        self.functions = list_functions.generate(seed, many)

    def draw(self, mix: Mix) -> Row:
        if self.rng.random() < mix.drills:
            return self.drill_row()
        if self.rng.random() < mix.functions:
            return self.problem_row(next(self.functions))
        return self.problem_row(next(self.short if self.rng.random() < mix.short else self.problems))

    def problem_row(self, problem: Problem) -> Row:
        prompt = self.tokenizer.encode(render(problem.prompt)).ids
        answer = self.tokenizer.encode(problem.answer).ids
        length = self.row_length(len(prompt) + len(answer) + 1)
        canvas = answer + [self.eos] * (length - len(prompt) - len(answer))
        late = [token in self.digits for token in canvas]
        return Row(prompt + canvas, [False] * len(prompt) + [True] * len(canvas), [False] * len(prompt) + late)

    def row_length(self, least: int) -> int:
        """Mostly the next multiple of 16 or a little more, now and then a long row."""
        draw = self.rng.random()
        for length, share in LONG:
            if draw < share and least <= length:
                return length
            draw -= share
        return -(-least // GRAIN) * GRAIN + GRAIN * (self.rng.random() < 0.25)

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
        return Row(tokens + [self.eos] * rest, maskable + [False] * rest, [False] * DRILL_LENGTH, sum(maskable) // 2)


def drill(rng: Random) -> tuple[str, str, str]:
    """A random sum as (before, result, behind): bare, or in a sentence as answers have it.

    The ranges are those of ``word-problems``; half of + and - have two long numbers, which totals need and which are
    learnt last.
    """
    kind, long = rng.choice(list(SIGNS)), rng.random() < 0.5
    left, right, result = draw_sum(rng, SIGNS[kind], long)
    if rng.random() < BARE:
        return f" {left} {SIGNS[kind]} {right} =", f" {result}", "."
    step = Step(kind, left, right, result, rng.random() < 0.5)
    words = Story.draw(rng).words(step, [step, step])
    before, _, behind = rng.choice(WORDINGS[kind]).format_map(words).partition(f"= {result}")
    return f" {before}=", f" {result}", behind


def draw_sum(rng: Random, sign: str, long: bool) -> tuple[int, int, int]:
    """left, right, result."""
    if sign in "+-":
        b = rng.randint(10, 58) if long else rng.randint(2, 9)
        a = rng.randint(2, 60 - b if long else rng.choice((9, 90)))
        return (a, b, a + b) if sign == "+" else (a + b, b, a)
    a, b = (rng.randint(2, 10), rng.randint(2, 9)) if rng.random() < 0.7 else (rng.randint(2, 25), 2)
    return (a, b, a * b) if sign == "*" else (a * b, b, a)


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
    tokens, maskable = torch.tensor([row.tokens for row in rows]), torch.tensor([row.maskable for row in rows])
    return Batch(tokens, maskable, torch.tensor([row.late for row in rows]), torch.tensor([row.least for row in rows]))


def mask_tokens(batch: Batch, mask_id: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """LLaDA's noise with stratified shares: n ~ U{least..G} masks per row, one stratum per row of the batch.

    Which n is random, but that half of the rows lose their digits from the right. Under random masks the result of a
    sum mostly stands somewhere else, to be copied; while decoding, what comes after it is not there yet.

    Returns the noised tokens (B, L), which are masked (B, L) bool, and each row's n (B,).
    """
    rows = batch.tokens.shape[0]
    room = batch.maskable.sum(1)
    strata = (torch.randperm(rows, generator=generator) + torch.rand(rows, generator=generator)) / rows
    span = room - batch.least
    count = batch.least + (strata * (span + 1)).long().clamp(max=span)
    score = torch.rand(batch.tokens.shape, generator=generator)
    after = batch.late.flip(1).cumsum(1).flip(1)  # digits from here on
    falling = 0.5 * after / after[:, :1].clamp(min=1)
    ordered = torch.rand(rows, 1, generator=generator) < 0.5
    score = torch.where(batch.late & ordered, falling, score).masked_fill(~batch.maskable, 2.0)
    masked = score.argsort(1).argsort(1) < count[:, None]
    return batch.tokens.masked_fill(masked, mask_id), masked, count

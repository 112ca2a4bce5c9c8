"""Rows of training: problems in the chat template, on in-place templates (ICE), as texts with holes, and drills.

A row is a prompt, an answer and end-of-text up to the row's length, so canvas lengths vary by themselves. ``maskable``
says which tokens may be masked: the whole canvas of a problem, a text's holes, only the results of a drill.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random

from tokenizers import Tokenizer

from starr.evals.tasks.problem import Problem
from starr.evals.tasks.word_patterns import WORDINGS
from starr.evals.tasks.word_problems import Story
from starr.evals.tasks.word_steps import BOTH, LARGEST_OF_TWO, LEAST, SIGNS, Step, draw_steps
from training.tokenizer import BOS, EOS, render

SPACE = "Ġ"  # how byte-level tokens spell it
GRAIN = 16
DRILL_LENGTH = 96
BARE = 0.3  # share of drills without words
BARE_SHORT = 0.4  # share of lines and grids whose names or cells alone are masked
# Row lengths and shares of rows: a canvas of 128 must not tell how long its answer is. Lines and grids are short.
LONG, LESS_LONG = ((256, 0.10), (320, 0.01)), ((160, 0.04),)
SECTIONS = (1, 1, 1, 1, 1, 2, 3)  # thinking sections of a template
CANVASES = (96, 128, 128, 128, 160)  # of templates, about; longer where the answer needs it
ANSWER = 8  # masks of a template's answer
HOLES = 3  # most in a text


@dataclass(frozen=True)
class Row:
    """One row of a ``Batch``; ``least`` is half of a drill's results, which do not depend on one another."""

    tokens: list[int]
    maskable: list[bool]
    digits: list[bool]
    fill: list[bool]
    least: int = 1


class RowMaker:
    """Makes rows of problems; ``rng`` draws their lengths, sections and holes.

    ``longer`` rows go on behind their answer; a block-causal model cannot see how long a row is and needs none.
    """

    def __init__(self, tokenizer: Tokenizer, rng: Random, *, longer: bool = True) -> None:
        self.tokenizer, self.rng, self.longer = tokenizer, rng, longer
        self.eos, self.bos = tokenizer.token_to_id(EOS), tokenizer.token_to_id(BOS)
        self.blank = tokenizer.token_to_id(SPACE)
        self.digits = {tokenizer.token_to_id(space + digit) for space in ("", SPACE) for digit in "0123456789"}

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text).ids

    def problem_row(self, problem: Problem) -> Row:
        prompt, answer = self.encode(render(problem.prompt)), self.encode(problem.answer)
        long = LESS_LONG if problem.task in ("lines", "grids") else LONG
        rest = self.row_length(len(prompt) + len(answer) + 1, long) - len(prompt) - len(answer)
        row = self.row(prompt, answer + [self.eos] * rest, [True] * (len(answer) + rest), len(answer))
        return self.short_row(row, problem.task) if long is LESS_LONG else row

    def short_row(self, row: Row, task: str) -> Row:
        """A line or grid: no digit is worth more than others, and in most rows only names or cells are masked.

        Numbers, line ends and end-of-text are learnt at once; names and cells would be a small part of the loss.
        """
        bare = self.rng.random() < BARE_SHORT
        wanted = [free and not fill and (token in self.digits) == (task == "grids")
                  for token, free, fill in zip(row.tokens, row.maskable, row.fill, strict=True)]  # fmt: skip
        return replace(row, digits=[False] * len(row.tokens), maskable=wanted if bare else row.maskable)

    def row(self, told: list[int], canvas: list[int], maskable: list[bool], answer: int) -> Row:
        """``told`` in front of a canvas whose first ``answer`` tokens are text and the others fill."""
        none, rest = [False] * len(told), len(canvas) - answer
        digits = [token in self.digits for token in canvas[:answer]] + [False] * rest
        return Row(told + canvas, none + maskable, none + digits, none + [False] * answer + [True] * rest)

    def row_length(self, least: int, long: tuple[tuple[int, float], ...]) -> int:
        """The next multiple of 16; a longer row mostly has none, one or two sixteens more, now and then many."""
        whole = -(-least // GRAIN) * GRAIN
        if not self.longer:
            return whole
        draw = self.rng.random()
        for length, share in long:
            if draw < share and least <= length:
                return length
            draw -= share
        return whole + GRAIN * self.rng.choice((0, 0, 1, 2))

    def template_row(self, problem: Problem) -> Row:
        """The answer of a word problem on the canvas of ``ice``: step i of n stands in section i * sections // n.

        Sections are filled up with blanks, since no end-of-text may stand in them.
        """
        told, sections = self.encode(render(problem.prompt)), self.rng.choice(SECTIONS)
        *sentences, result = re.split(r"(?<=\.) |(?= #### )", problem.answer)
        parts: list[list[int]] = [[] for _ in range(sections)]
        for index, sentence in enumerate(sentences):
            parts[index * sections // len(sentences)] += self.encode(" " + sentence)
        marks = [self.encode("\n" * (number > 0) + f"Step {number + 1}:") for number in range(sections)]
        lead, value = self.encode("\n####"), self.encode(" " + result.split()[-1])
        fixed = sum(map(len, marks)) + len(lead) + ANSWER
        room = max(sections * max(map(len, parts)), self.rng.choice(CANVASES) - fixed)
        room += -(len(told) + fixed + room) % GRAIN
        canvas, maskable = list[int](), list[bool]()
        for number, (mark, part) in enumerate(zip(marks, parts, strict=True)):
            size = room // sections + (number < room % sections)
            canvas += mark + part + [self.blank] * (size - len(part))
            maskable += [False] * len(mark) + [True] * size
        text = canvas + lead + value
        maskable += [False] * len(lead) + [True] * ANSWER
        return self.row(told, text + [self.eos] * (ANSWER - len(value)), maskable, len(text))

    def hole_row(self, problem: Problem) -> Row:
        """One to three holes of a few words in a text of the problem's sentences; nothing ends it."""
        text = self.rng.choice((problem.prompt, f"{problem.prompt} {problem.answer}", problem.answer))
        sentences = re.findall(r"[^.?]+[.?]| #### \d+", text)
        first = self.rng.randrange(len(sentences))
        words = "".join(sentences[first : first + self.rng.randint(1, 6)]).strip().split(" ")
        tokens, maskable, place = [self.bos], [False], 0
        for _ in range(self.rng.randint(1, HOLES)):
            start = self.rng.randint(place, len(words) - 1)
            end = min(len(words), start + self.rng.choice((1, 1, 2, 3, 5)))
            before = " ".join(words[place:start]) + " " * (start > place)
            hole, punctuation = re.fullmatch(r"(.*?)([.,?]?)", " ".join(words[start:end]), re.DOTALL).groups()
            told = (" " if place and not before.startswith(" ") else "") + before
            parts = [(self.encode(told), False), (self.encode(hole), True), (self.encode(punctuation), False)]
            for part, masked in parts:
                tokens += part
                maskable += [masked] * len(part)
            place = end
            if place >= len(words):
                break
        else:
            rest = self.encode(" " + " ".join(words[place:]))
            tokens += rest
            maskable += [False] * len(rest)
        digits = [masked and token in self.digits for token, masked in zip(tokens, maskable, strict=True)]
        return Row(tokens, maskable, digits, [False] * len(tokens))

    def drill_row(self) -> Row:
        """Sums one after another; only their results may be masked."""
        tokens, maskable = [self.bos], [False]
        while True:
            parts = [self.encode(text) for text in drill(self.rng)]
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

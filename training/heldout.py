"""Held-out accuracy while training: a plain threshold decode, and teacher-forced results per operation.

Deliberately small and independent of the engine: the full table of the model card comes from ``training.evaluate``.
"""

from __future__ import annotations

import re
from collections import defaultdict

import torch
from tokenizers import Tokenizer
from torch import Tensor

from starr.evals import word_problems
from starr.evals.problem import Problem
from starr.model.transformer import Transformer
from training.tokenizer import EOS, MASK, render

EQUATION = re.compile(r"\d+ ([-+*/]) \d+ =( \d+)")


@torch.no_grad()
def decode(
    model: Transformer, tokenizer: Tokenizer, prompts: list[str], canvas: int, threshold: float
) -> tuple[list[str], float]:
    """Texts and mean forwards; commits ``confidence > threshold``, at least the best (lower position on a tie)."""
    mask, eos = tokenizer.token_to_id(MASK), tokenizer.token_to_id(EOS)
    texts, forwards = [], 0
    for prompt in prompts:
        ids = tokenizer.encode(render(prompt)).ids
        row = torch.tensor([ids + [mask] * canvas])
        while (row == mask).any():
            forwards += 1
            confidence, proposal = model.head(model(row))[..., : tokenizer.get_vocab_size()].softmax(-1).max(-1)
            confidence = confidence.masked_fill(row != mask, -1.0)
            commit = confidence > threshold
            commit[0, confidence.argmax()] = True
            row = torch.where(commit, proposal, row)
        answer = row[0, len(ids) :].tolist()
        texts.append(tokenizer.decode(answer[: answer.index(eos)] if eos in answer else answer))
    return texts, forwards / len(prompts)


@torch.no_grad()
def results_by_operation(model: Transformer, tokenizer: Tokenizer, problems: list[Problem]) -> dict[str, float]:
    """Share of equations whose result is right when only the results are masked, per sign."""
    mask = tokenizer.token_to_id(MASK)
    right: dict[str, list[bool]] = defaultdict(list)
    for problem in problems:
        prompt = tokenizer.encode(render(problem.prompt)).ids
        answer = tokenizer.encode(problem.answer)
        spans = [(match[1], match.span(2)) for match in EQUATION.finditer(problem.answer)]
        where = [(sign, tokens_in(answer.offsets, *span)) for sign, span in spans]
        row = torch.tensor([prompt + answer.ids])
        noised = row.clone()
        for _, places in where:
            noised[0, [len(prompt) + place for place in places]] = mask
        best: Tensor = model.head(model(noised)).argmax(-1)
        for sign, places in where:
            at = [len(prompt) + place for place in places]
            right[sign].append(bool((best[0, at] == row[0, at]).all()))
    return {sign: sum(hits) / len(hits) for sign, hits in sorted(right.items())}


def tokens_in(offsets: list[tuple[int, int]], start: int, end: int) -> list[int]:
    return [index for index, (first, last) in enumerate(offsets) if first >= start and last <= end and last > first]


def check(model: Transformer, tokenizer: Tokenizer, count: int) -> dict[str, object]:
    """What the training log records now and then, on the test split's generator (not the fixed test set)."""
    problems = list(word_problems.generate(seed=1, count=count, split="test"))
    texts, forwards = decode(model, tokenizer, [problem.prompt for problem in problems], canvas=96, threshold=0.9)
    solved = sum(word_problems.grade(problem, text) for problem, text in zip(problems, texts, strict=True))
    return {
        "word_problems": solved / count, "n": count, "forwards": forwards,
        "results": results_by_operation(model, tokenizer, problems), "sample": texts[0],
    }  # fmt: skip

"""Constraints by brute force: every token string of the canvas's length is written out and matched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product

Language = str | Callable[[bytes], bool]  # an expression, or whether a text belongs


def matches(language: Language, text: bytes) -> bool:
    if isinstance(language, str):
        return re.fullmatch(language.encode(), text, re.DOTALL) is not None
    return language(text)


def completions(canvas: Sequence[int | None], vocabulary: Sequence[bytes], eos: int, pattern: Language) -> Iterator:
    """Every filling of the canvas (None is a mask) whose text up to end-of-text matches, end-of-texts behind it."""
    choices = [range(len(vocabulary)) if token is None else [token] for token in canvas]
    for tokens in product(*choices):
        until = tokens.index(eos) if eos in tokens else len(tokens)
        if any(token != eos for token in tokens[until:]):
            continue
        if matches(pattern, b"".join(vocabulary[token] for token in tokens[:until])):
            yield tokens


def allowed(canvas: Sequence[int | None], vocabulary: Sequence[bytes], eos: int, pattern: Language) -> list[set[int]]:
    """Tokens that each position holds in some completion."""
    found: list[set[int]] = [set() for _ in canvas]
    for tokens in completions(canvas, vocabulary, eos, pattern):
        for place, token in enumerate(tokens):
            found[place].add(token)
    return found


def best(canvas: Sequence[int | None], vocabulary: Sequence[bytes], eos: int, pattern: Language, scores: dict) -> float:
    """The largest total score of the chosen positions over all completions; ``scores[place][token]``."""
    totals = [
        sum(scores[place][tokens[place]] for place in scores)
        for tokens in completions(canvas, vocabulary, eos, pattern)
    ]
    return max(totals)

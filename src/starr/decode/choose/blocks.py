"""Choices of block-causal models, block after block.

Such a model decodes a block after the finished ones before it. So the probability of a choice is a product over its
blocks: of its tokens there, given its own tokens in the blocks before. Every block that a choice reaches is read from a
row that ends with that block; choices that begin alike share rows, and those that end within the first block share one.
Behind the block that holds its end-of-text a choice has no more to say. Where logits are shifted, a block's first token
comes from the block before, and the others are read with that token in its place, as they are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from starr.decode.choose.questions import Question
from starr.errors import InputError
from starr.model.network.masks import block_spans

if TYPE_CHECKING:
    from starr.model.load import Model

Rows = list[list[int]]


def block_by_block(model: Model, rows: Rows, asked: list[list[Question]]) -> tuple[Rows, list[list[Question]]]:
    """The same questions, each part on a row whose last block is the one that it asks about."""
    place: dict[tuple[int, ...], int] = {}
    found: list[list[Question]] = []
    for parts in asked:
        found.append([])
        for part in parts:
            before = rows[part.row][: part.start]
            for choice, tokens in part.fillings.items():
                if len(rows[part.row]) > part.start + len(tokens):
                    raise InputError(
                        "Text after a mask cannot be used: a block-causal model does not see what follows a block.",
                        hint="Ask one question, at the end of the text.",
                        param="prompt",
                    )
                for row, start, some in blocks_of(model, before, tokens):
                    number = place.setdefault(tuple(row), len(place))
                    found[-1].append(Question(number, start, {choice: some}, part.order))
    return [list(row) for row in place], found


def blocks_of(model: Model, before: list[int], tokens: list[int]) -> Iterator[tuple[list[int], int, list[int]]]:
    """For every block of a filling: a row, where the block's part of the filling begins, and its tokens."""
    spec, start = model.spec, len(before)
    assert spec.block_length is not None
    block, origin = spec.block_length, spec.origin(start)
    for begin, end in block_spans(start, start + len(tokens), block, origin):
        part = tokens[begin - start : end - start]
        led = int(spec.shift and (begin - origin) % block == 0)
        known = [*before, *tokens[: begin - start + led]]
        whole = min(end + (origin - end) % block, spec.max_length)
        yield known + [spec.mask_id] * (whole - len(known)), begin, part
        if set(part) & set(spec.eos_ids):
            return

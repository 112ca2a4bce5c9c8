"""Tokens to text: up to the first end-of-text; settled text that only grows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starr.model.tokenizer import Tokenizer


def until_end(tokens: Sequence[int], eos_ids: Collection[int]) -> list[int]:
    """The tokens before the first end-of-text."""
    for index, token in enumerate(tokens):
        if token in eos_ids:
            return list(tokens[:index])
    return list(tokens)


def settled_text(tokenizer: Tokenizer, tokens: Sequence[int], shown: str) -> str:
    """Text of settled tokens, never shorter than and never contradicting what was ``shown``.

    A token may hold part of a character: replacement marks at the end wait until the rest of the character is settled.
    """
    text = tokenizer.decode(list(tokens)).rstrip("\ufffd")
    return text if text.startswith(shown) else shown

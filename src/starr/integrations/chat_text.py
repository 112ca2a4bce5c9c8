"""Chats as one text, for programs that pass prompts on as text, without losing which special tokens are real.

A rendered chat begins with MARK, and MARK stands before every place where a user wrote the text of a special token.
MARK is a Unicode noncharacter: no text should hold it, and a chat that does is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from starr.errors import InputError

if TYPE_CHECKING:
    from starr.model.text.tokenizer import Tokenizer

MARK = "\ufdd0"


def is_chat(text: str) -> bool:
    """Whether a text is a rendered chat."""
    return text.startswith(MARK)


def render_chat(tokenizer: Tokenizer, messages: Sequence[Mapping[str, str]], opened: bool = False) -> str:
    """The chat as text; with ``opened`` the last message is the beginning of the assistant's answer."""
    if any(MARK in message.get("content", "") for message in messages):
        raise InputError("A message holds the noncharacter U+FDD0.", hint="Remove it.", param="messages")
    said = messages[:-1] if opened else messages
    pieces = [piece if special else protect(tokenizer, piece) for piece, special in tokenizer.pieces(said)]
    return MARK + "".join(pieces) + (protect(tokenizer, messages[-1]["content"]) if opened else "")


def protect(tokenizer: Tokenizer, text: str) -> str:
    """Text in which every special token's text is marked as text."""
    choices = alternatives(tokenizer)
    return re.sub(f"(?={choices})", MARK, text) if choices else text


def encode_chat(tokenizer: Tokenizer, text: str) -> list[int]:
    """Tokens of a rendered chat, or of one with protected text after it."""
    choices = alternatives(tokenizer)
    parts = re.split(f"(?<!{MARK})({choices})", text[1:]) if choices else [text[1:]]
    pieces = [(part.replace(MARK, ""), index % 2 == 1) for index, part in enumerate(parts)]
    return tokenizer.encode_pieces([piece for piece in pieces if piece[0]])


def alternatives(tokenizer: Tokenizer) -> str:
    """A pattern that finds every added token, the longest first."""
    return "|".join(map(re.escape, sorted(tokenizer.added, key=len, reverse=True)))

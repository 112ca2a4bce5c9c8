"""Tokens to text: up to the first end-of-text; settled text that only grows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starr.model.text.tokenizer import Tokenizer


def until_end(tokens: Sequence[int], eos_ids: Collection[int]) -> list[int]:
    """The tokens before the first end-of-text."""
    for index, token in enumerate(tokens):
        if token in eos_ids:
            return list(tokens[:index])
    return list(tokens)


@dataclass(frozen=True, slots=True)
class CanvasText:
    """A row's canvas on the host."""

    tokens: list[int]
    masked: list[bool]
    frozen: list[bool]  # template text

    def kept(self, eos_ids: Collection[int], ends: bool) -> list[int]:
        """The positions whose tokens make the text; masks are not among them.

        Where an end-of-text ``ends`` the row: all before the first. Elsewhere it only ends its run of tokens between
        template text: what follows it there is left out, template text never is.
        """
        kept: list[int] = []
        closed = False
        for place, (token, masked, frozen) in enumerate(zip(self.tokens, self.masked, self.frozen, strict=True)):
            closed = not frozen and (closed or (token in eos_ids and not masked))
            if closed and ends:
                break
            if not closed and not masked:
                kept.append(place)
        return kept

    def made(self, places: Sequence[int]) -> int:
        """How many of the positions were decoded, template text not counted."""
        return sum(not self.frozen[place] for place in places)


def settled_text(tokenizer: Tokenizer, tokens: Sequence[int], shown: str) -> str:
    """Text of settled tokens, never shorter than and never contradicting what was ``shown``.

    A token may hold part of a character: replacement marks at the end wait until the rest of the character is settled.
    """
    text = tokenizer.decode(list(tokens)).rstrip("\ufffd")
    return text if text.startswith(shown) else shown

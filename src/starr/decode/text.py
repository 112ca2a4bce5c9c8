"""Tokens to text: up to the first end-of-text or stop string; settled text that only grows.

The stop string that is complete first ends the text; the longer one wins where two end together. So the cut does not
depend on how the text arrived, and text that ``sendable`` lets through is never taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starr.errors import InputError

if TYPE_CHECKING:
    from starr.model.load import Model
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


def stop_strings(given: str | Sequence[str]) -> tuple[str, ...]:
    """One string or several, none of them empty; "" and () are none."""
    found = (given,) if isinstance(given, str) and given else tuple(given) if isinstance(given, Sequence) else (None,)
    if not all(isinstance(text, str) and text for text in found):
        raise InputError(f"stop takes texts, none of them empty, got {given!r}.", param="stop")
    return found


def cut_at(text: str, stops: Sequence[str]) -> int | None:
    """Where the text ends because of a stop string; None if none occurs."""
    found = [(start + len(stop), start) for stop in stops if (start := text.find(stop)) >= 0]
    return min(found)[1] if found else None


def before_stop(text: str, stops: Sequence[str]) -> str:
    """The text before its stop string."""
    return text[: cut_at(text, stops)]


def sendable(text: str, stops: Sequence[str]) -> str:
    """The text before a stop string, without an end that may turn out to begin one."""
    end = cut_at(text, stops)
    if end is not None:
        return text[:end]
    held = max((overlap(text, stop) for stop in stops), default=0)
    return text[: len(text) - held]


def overlap(text: str, stop: str) -> int:
    """Length of the longest proper beginning of ``stop`` that ``text`` ends with."""
    longest = min(len(stop) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)


def within(tokens: Sequence[int], text: str, model: Model) -> int:
    """How many leading tokens begin inside the text, counted in bytes."""
    room, count = len(text.encode()), 0
    for token in tokens:
        if room <= 0:
            break
        room -= 0 if token in model.tokenizer.special_ids else len(model.tokenizer.bytes_of(token))
        count += 1
    return count

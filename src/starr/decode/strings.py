"""Stop strings: where text that only grows is cut, and what is left of a row that one of them ended.

The stop string that is complete first ends the text, the longer one where two end together. So what is cut does not
depend on how the text arrived, and what ``sendable`` lets through is never taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from starr.decode.result import Event
from starr.decode.trace import Generation
from starr.errors import InputError
from starr.named import text_form

if TYPE_CHECKING:
    from starr.decode.request import Request
    from starr.model.load import Model


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


def stopped(event: Event, request: Request, model: Model, stops: Sequence[str]) -> Event:
    """An event with its text up to a stop string; done, with its generation, where one occurs in settled text."""
    end = cut_at(event.text, stops)
    if end is None:
        return event if event.done else replace(event, text=sendable(event.text, stops))
    text, places = event.text[:end], event.places
    count = within([event.tokens[place] for place in places], text, model)
    tokens = [event.tokens[place] for place in places[:count]]
    stats = event.stats if event.generation is None else event.generation.stats
    generation = Generation(
        text=text,
        tokens=tokens,
        finish_reason="stop",
        model=model.name,
        strategy=text_form(request.strategy),
        cache=text_form(request.cache),
        seed=request.seed,
        prompt_tokens=request.start,
        stats=replace(stats, tokens=event.snapshot.text.made(places[:count])),
        trace=None if event.generation is None else event.generation.trace,
        commit_steps=[event.snapshot.committed_at[place] for place in places[:count]],
        logprobs=[event.snapshot.logprob(place) for place in places[:count]],
    )
    return replace(event, text=text, done=True, generation=generation)

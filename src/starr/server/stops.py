"""Stop strings over text that only grows: pure functions.

The stop string that is complete first ends the text, the longer one where two end together. So what is cut does not
depend on how the text arrived, and what ``sendable`` lets through is never taken back.
"""

from __future__ import annotations

from collections.abc import Sequence


def cut_at(text: str, stops: Sequence[str]) -> int | None:
    """Where the text ends because of a stop string; None if none occurs."""
    found = [(start + len(stop), start) for stop in stops if (start := text.find(stop)) >= 0]
    return min(found)[1] if found else None


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

"""A canvas made of template text and runs of masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """Canvas tokens, and which of them are masks; the others are frozen."""

    tokens: list[int]
    masked: list[bool]


def lay_out(parts: Sequence[str | int], encode: Callable[[str], list[int]], mask_id: int) -> Layout:
    """Texts, and numbers of masks, one after the other."""
    tokens: list[int] = []
    masked: list[bool] = []
    for part in parts:
        new = [mask_id] * part if isinstance(part, int) else encode(part)
        tokens += new
        masked += [isinstance(part, int)] * len(new)
    return Layout(tokens, masked)

"""How results are printed: one line of figures, and tables that line up."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starr.trace import Stats


def figures(stats: Stats) -> str:
    """The figures of a run in one line."""
    parts = [
        f"{stats.forwards} forwards",
        f"{stats.tokens} tokens",
        f"{stats.tokens_per_forward:.2f} tokens per forward",
        f"{stats.tokens_per_second:.0f} tokens per second",
        f"{stats.positions} positions",
        f"{stats.revocations} revocations",
    ]
    return " · ".join(parts)


def note(text: str, quiet: bool = False) -> None:
    """A line for people, on standard error, so that standard output stays what was asked for."""
    if not quiet:
        print(text, file=sys.stderr)


def dump(value: Any) -> str:
    """JSON in one line, text kept readable."""
    return json.dumps(value, ensure_ascii=False)


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Columns padded to their widest cell; numbers to the right."""
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    right = [bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(len(head))]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    lines = []
    for line in cells:
        padded = (f"{cell:{'>' if r else '<'}{w}}" for cell, w, r in zip(line, widths, right, strict=True))
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def clip(text: str, width: int) -> str:
    """Text in one line of at most ``width`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"

"""How results are printed: one line of figures, and tables that line up."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starr.errors import counted

if TYPE_CHECKING:
    from starr.decode.trace import Stats


def figures(stats: Stats) -> str:
    """The figures of a run in one line."""
    parts = [
        counted(stats.forwards, "forward"),
        counted(stats.tokens, "token"),
        f"{stats.tokens_per_forward:.2f} tokens per forward",
        f"{stats.tokens_per_second:.0f} tokens per second",
        counted(stats.positions, "position"),
        counted(stats.revocations, "revocation"),
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


def three(figures: Mapping[str, Any]) -> tuple[float | str, ...]:
    """Right, formed and both in percent; formed is a dash where only the answer is graded."""
    shares = (figures[name] for name in ("right", "formed", "both"))
    return tuple("–" if share is None else round(100 * share, 1) for share in shares)


def clip(text: str, width: int) -> str:
    """Text in one line of at most ``width`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"

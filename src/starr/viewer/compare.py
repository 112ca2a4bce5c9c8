"""Where two runs diverge: the first frame at which their canvases differ, and the final texts side by side."""

from __future__ import annotations

import difflib
import re
from itertools import combinations
from typing import Any

from starr.viewer.frames import MASKED, Trace, build_frames, read_piece

SHOWN = 12
"""Differing positions listed for the frame where two lanes diverge."""


def compare_lanes(traces: list[Trace]) -> list[dict[str, Any]]:
    """Compare every pair of lanes: {"a", "b", "parting", "text"}."""
    words = [read_pieces(trace) for trace in traces]
    return [
        {"a": a, "b": b, "parting": find_parting(words[a], words[b]), "text": compare_texts(traces[a], traces[b])}
        for a, b in combinations(range(len(traces)), 2)
    ]


def read_pieces(trace: Trace) -> list[list[str | None]]:
    """Read the frames as texts, None where masked, so that models with different vocabularies can be compared."""
    rows = build_frames(trace)
    known = {token: read_piece(trace, token) for token in set(rows.ravel().tolist()) - {MASKED}}
    return [[known.get(token) for token in row] for row in rows.tolist()]


def find_parting(a: list[list[str | None]], b: list[list[str | None]]) -> dict[str, Any] | None:
    """Find the first step after which the canvases differ, and where; None if they never do.

    A lane that is done keeps its last frame. Positions beyond the shorter canvas count as masked.
    """
    width = max(len(a[0]), len(b[0]))
    for frame in range(max(len(a), len(b))):
        left, right = (lane[min(frame, len(lane) - 1)] for lane in (a, b))
        left, right = (row + [None] * (width - len(row)) for row in (left, right))
        if left != right:
            where = [index for index in range(width) if left[index] != right[index]]
            cells = [[index, left[index], right[index]] for index in where[:SHOWN]]
            return {"step": frame, "count": len(where), "cells": cells}
    return None


def compare_texts(a: Trace, b: Trace) -> list[tuple[str, str]]:
    """Compare the final texts as runs of ("same" | "first" | "second", words)."""
    left, right = (re.findall(r"\s+|\w+|[^\w\s]", trace.get("text") or "") for trace in (a, b))
    runs: list[tuple[str, str]] = []
    for kind, a0, a1, b0, b1 in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            runs.append(("same", "".join(left[a0:a1])))
            continue
        runs += [(side, "".join(part)) for side, part in (("first", left[a0:a1]), ("second", right[b0:b1])) if part]
    return runs

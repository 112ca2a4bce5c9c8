"""A trace made small for the page: whole numbers, differences from step to step, gzip and base64.

Every column runs over the cells of all windows, step by step. ``delta`` columns hold the difference from the same
position in the previous step, so what does not change is zero and costs almost nothing. ``page/unpack.js`` is the
inverse.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import asdict
from typing import Any

import numpy as np

from starr.viewer.frames import MASKED, Ints, Trace, curves, frames, piece

GRAIN = 1000
"""Confidences and thresholds are kept to a thousandth."""

UNKNOWN = -20 * GRAIN
"""Stands for a value that is not there."""


def pack(trace: Trace) -> dict[str, Any]:
    """One lane of the page from a checked trace."""
    steps, rows = trace["steps"], frames(trace)
    ids = vocabulary(trace, rows)
    windows = [step["window"] for step in steps]
    confidence = [thousandths(step["confidence"]) for step in steps]
    best = [thousandths(step["best"]) for step in steps]
    cells = {
        "canvas": flat(np.diff(np.searchsorted(ids, rows), axis=0, prepend=0)),
        "proposal": delta([np.searchsorted(ids, step["proposal"]) for step in steps], windows),
        "confidence": delta(confidence, windows),
        "lead": delta([top - own for top, own in zip(best, confidence, strict=True)], windows),
        "queried": delta([np.array(step["queried"], dtype=np.int64) for step in steps], windows),
        "action": [int(value) for step in steps for value in step["action"]],
        "decided": [int(value) for step in steps for value in step["decided"]],
    }
    if any(step.get("threshold") for step in steps):
        thresholds = [step.get("threshold") or [None] * len(step["action"]) for step in steps]
        cells["threshold"] = delta([thousandths(values) for values in thresholds], windows)
    if any(step.get("label") for step in steps):
        cells["label"] = [int(value) for step in steps for value in step.get("label") or [0] * len(step["action"])]
    if any(step.get("allowed") for step in steps):
        cells["allowed"] = [value for step in steps for value in set_numbers(trace, step)]
    return {**header(trace), "length": rows.shape[1], "ids": ids, "pieces": [piece(trace, token) for token in ids],
            "windows": windows, "cells": cells, "curves": asdict(curves(trace, rows))}  # fmt: skip


def header(trace: Trace) -> dict[str, Any]:
    """What the page says about the run as a whole."""
    words = {key: trace.get(key) or "" for key in ("model", "strategy", "cache", "prompt", "text")}
    judged = {key: trace.get(key) for key in ("answer", "right", "formed")}
    bound = {"constraint": trace.get("constraint", ""), "sets": trace.get("sets", [])}
    return {**words, **judged, **bound, "stats": trace.get("stats", {}), "blocks": trace.get("blocks") or []}


def set_numbers(trace: Trace, step: dict[str, Any]) -> list[int]:
    """Which set each position of a step is restricted to; 0 where none is known."""
    known = len(trace.get("sets", []))
    given = step.get("allowed") or [0] * len(step["action"])
    return [int(value) if 0 <= value < known else 0 for value in given]


def vocabulary(trace: Trace, rows: Ints) -> list[int]:
    """The ids a trace uses, ascending, MASKED first; the page calls a token by its place in this list."""
    used = {MASKED, *rows.ravel().tolist()}
    for step in trace["steps"]:
        used.update(step["proposal"])
    return sorted(used)


def thousandths(values: list[float | None]) -> Ints:
    """(W,) values in units of 1 / GRAIN, within ± 10; UNKNOWN where there is none."""
    found = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    scaled = np.round(np.clip(np.nan_to_num(found), -10, 10) * GRAIN).astype(np.int64)
    return np.where(np.isnan(found), UNKNOWN, scaled)


def delta(columns: list[Ints], windows: list[list[int]]) -> list[int]:
    """Differences of each step's column (its window's width) from the last known value at the same canvas position."""
    last = np.zeros(max((end for _, end in windows), default=0), dtype=np.int64)
    parts = []
    for column, (start, end) in zip(columns, windows, strict=True):
        parts.append(column - last[start:end])
        last[start:end] = column
    return flat(np.concatenate(parts)) if parts else []


def flat(values: Ints) -> list[int]:
    """All values in order, as Python ints."""
    return [int(value) for value in values.ravel()]


def encode(data: dict[str, Any]) -> str:
    """Text of the base64 alphabet only: nothing in it can end a script or begin a tag. Same data, same text."""
    raw = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
    return base64.b64encode(gzip.compress(raw, 9, mtime=0)).decode("ascii")

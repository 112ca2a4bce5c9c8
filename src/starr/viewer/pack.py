"""Compression of a trace for the page: whole numbers, differences from step to step, gzip and base64.

Every column runs over the cells of all windows, step by step. Columns of changes hold the difference from the same
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

from starr.decode.strategies import strategy
from starr.errors import StarrError
from starr.viewer.frames import (
    MASKED,
    REVISE,
    REVOKE,
    Ints,
    Trace,
    build_curves,
    build_frames,
    read_floats,
    read_piece,
)

GRAIN = 1000
"""Confidences and thresholds are kept to a thousandth."""

UNKNOWN = -20 * GRAIN
"""A value that is missing."""


def pack(trace: Trace) -> dict[str, Any]:
    """Pack a checked trace as one lane of the page."""
    steps, rows = trace["steps"], build_frames(trace)
    ids = list_ids(trace, rows)
    windows = [step["window"] for step in steps]
    confidence = [scale(step["confidence"]) for step in steps]
    best = [scale(step["best"]) for step in steps]
    cells = {
        "canvas": flatten(np.diff(np.searchsorted(ids, rows), axis=0, prepend=0)),
        "proposal": encode_changes([np.searchsorted(ids, step["proposal"]) for step in steps], windows),
        "confidence": encode_changes(confidence, windows),
        "lead": encode_changes([top - own for top, own in zip(best, confidence, strict=True)], windows),
        "queried": encode_changes([np.array(step["queried"], dtype=np.int64) for step in steps], windows),
        "action": [int(value) for step in steps for value in step["action"]],
        "decided": [int(value) for step in steps for value in step["decided"]],
    }
    if any(step.get("threshold") for step in steps):
        thresholds = [step.get("threshold") or [None] * len(step["action"]) for step in steps]
        cells["threshold"] = encode_changes([scale(values) for values in thresholds], windows)
    if any(step.get("label") for step in steps):
        cells["label"] = [int(value) for step in steps for value in step.get("label") or [0] * len(step["action"])]
    if any(step.get("allowed") for step in steps):
        cells["allowed"] = [value for step in steps for value in read_sets(trace, step)]
    pieces = [read_piece(trace, token) for token in ids]
    return {**describe_run(trace), "length": rows.shape[1], "ids": ids, "pieces": pieces,
            "windows": windows, "cells": cells, "curves": asdict(build_curves(trace, rows))}  # fmt: skip


def describe_run(trace: Trace) -> dict[str, Any]:
    """Collect what the page says about the run as a whole."""
    words = {key: trace.get(key) or "" for key in ("model", "strategy", "cache", "prompt", "text")}
    judged = {key: trace.get(key) for key in ("answer", "right", "formed")}
    judged["revokes"] = can_revoke(trace)
    bound = {"constraint": trace.get("constraint", ""), "sets": trace.get("sets", [])}
    return {**words, **judged, **bound, "stats": trace.get("stats", {}), "blocks": trace.get("blocks") or []}


def can_revoke(trace: Trace) -> bool:
    """Whether held tokens of the run could be revoked: one was, or the strategy may; unknown strategies may."""
    if any(action in (REVOKE, REVISE) for step in trace["steps"] for action in step["action"]):
        return True
    form = trace.get("strategy") or ""
    try:
        return "/" in form or "@" in form or strategy(form).revokes()  # a form that names a file is not parsed
    except StarrError:
        return True


def read_sets(trace: Trace, step: dict[str, Any]) -> list[int]:
    """Read the allowed set of each position of a step; 0 where none is known."""
    known = len(trace.get("sets", []))
    given = step.get("allowed") or [0] * len(step["action"])
    return [int(value) if 0 <= value < known else 0 for value in given]


def list_ids(trace: Trace, rows: Ints) -> list[int]:
    """List the ids that a trace uses, ascending, MASKED first; the page names a token by its index in this list."""
    used = {MASKED, *rows.ravel().tolist()}
    for step in trace["steps"]:
        used.update(step["proposal"])
    return sorted(used)


def scale(values: list[float | None]) -> Ints:
    """Scale values (W,) to units of 1 / GRAIN, within ± 10; UNKNOWN where there is none."""
    numbers = read_floats(values)
    scaled = np.round(np.clip(np.nan_to_num(numbers), -10, 10) * GRAIN).astype(np.int64)
    return np.where(np.isnan(numbers), UNKNOWN, scaled)


def encode_changes(columns: list[Ints], windows: list[list[int]]) -> list[int]:
    """Encode each step's column as differences from the last known value at the same canvas position."""
    last = np.zeros(max((end for _, end in windows), default=0), dtype=np.int64)
    parts = []
    for column, (start, end) in zip(columns, windows, strict=True):
        parts.append(column - last[start:end])
        last[start:end] = column
    return flatten(np.concatenate(parts)) if parts else []


def flatten(values: Ints) -> list[int]:
    """List all values in order, as Python ints."""
    return [int(value) for value in values.ravel()]


def encode(data: dict[str, Any]) -> str:
    """Encode data in the base64 alphabet, which cannot end a script or begin a tag. Equal data give equal text."""
    raw = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
    return base64.b64encode(gzip.compress(raw, 9, mtime=0)).decode("ascii")

"""From steps to frames: the whole canvas after every step, and the curves over steps.

Frame k is the canvas after k steps: frame 0 is the start, frame n the end. A step records the tokens before it. So a
position's token at frame k is read from the next step whose window holds it, or else from the final canvas. Frames
therefore hold what was written, not what was proposed. A position that no step's window holds is masked until the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from starr.decode.trace import Action

Trace = Mapping[str, Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MASKED = -1
COMMIT, REVOKE, REVISE = int(Action.COMMIT), int(Action.REVOKE), int(Action.REVISE)


def count_positions(trace: Trace) -> int:
    """Count the positions of the canvas: its length, or more where a window or the final tokens reach further."""
    ends: list[int] = [step["window"][1] for step in trace["steps"]]
    return max(int(trace["length"]), len(trace.get("tokens") or []), *ends)


def build_frames(trace: Trace) -> Ints:
    """(steps + 1, length) token ids, MASKED where a position is a mask."""
    steps = trace["steps"]
    rows = np.full((len(steps) + 1, count_positions(trace)), MASKED, dtype=np.int64)
    rows[-1] = build_last_frame(trace, rows.shape[1])
    seen = np.zeros(rows.shape[1], dtype=bool)
    for index in range(len(steps) - 1, -1, -1):
        rows[index] = rows[index + 1]
        start, end = steps[index]["window"]
        tokens, masked = np.array(steps[index]["tokens"], dtype=np.int64), np.array(steps[index]["masked"], dtype=bool)
        rows[index, start:end] = np.where(masked, MASKED, tokens)
        seen[start:end] = True
    rows[:-1, ~seen] = MASKED
    return rows


def build_last_frame(trace: Trace, length: int) -> Ints:
    """(length,) tokens after the last step: as recorded, else every step's actions applied to its proposals."""
    row = np.full(length, MASKED, dtype=np.int64)
    if trace.get("tokens"):
        tokens = np.array(trace["tokens"], dtype=np.int64)
        row[: len(tokens)] = np.where(tokens == trace.get("mask_id", MASKED), MASKED, tokens)
        return row
    for step in trace["steps"]:
        start, end = step["window"]
        action = np.array(step["action"])
        before = np.where(np.array(step["masked"], dtype=bool), MASKED, np.array(step["tokens"]))
        written = np.where((action == COMMIT) | (action == REVISE), np.array(step["proposal"]), before)
        row[start:end] = np.where(action == REVOKE, MASKED, written)
    return row


def read_piece(trace: Trace, token: int) -> str:
    """Read the text of a token; its id in angle brackets where the trace has none."""
    return str(trace.get("pieces", {}).get(str(token), f"<{token}>"))


@dataclass(frozen=True, slots=True)
class Curves:
    """Series over steps. ``masks`` and the clocks have one value per frame (steps + 1), the others one per step."""

    masks: list[int]
    commits: list[int]
    revocations: list[int]
    revisions: list[int]
    least: list[float | None]  # over the masked positions of the window
    mean: list[float | None]
    low: list[float | None]  # the band of thresholds over the window
    high: list[float | None]
    queried: list[int]  # positions recomputed by the step's forward
    forwards: list[float]
    positions: list[int]
    milliseconds: list[float]


def build_curves(trace: Trace, rows: Ints) -> Curves:
    """Build the series of a trace from its frames."""
    steps = trace["steps"]
    actions = [np.array(step["action"]) for step in steps]
    waiting = [summarize(step["confidence"], step["masked"]) for step in steps]
    bands = [summarize(step["threshold"], None) if step.get("threshold") else (None, None, None) for step in steps]
    queried = [int(step.get("positions") or sum(step["queried"])) for step in steps]
    # A step may cost more than one forward (guidance, leave-one-out): the total is spread evenly over the steps.
    share = trace.get("stats", {}).get("forwards", len(steps)) / max(len(steps), 1)
    return Curves(
        masks=[int(count) for count in (rows == MASKED).sum(axis=1)],
        commits=[int((action == COMMIT).sum()) for action in actions],
        revocations=[int((action == REVOKE).sum()) for action in actions],
        revisions=[int((action == REVISE).sum()) for action in actions],
        least=[low for low, _, _ in waiting],
        mean=[mean for _, mean, _ in waiting],
        low=[low for low, _, _ in bands],
        high=[high for _, _, high in bands],
        queried=queried,
        forwards=[round(share * index, 3) for index in range(len(steps) + 1)],
        positions=[0, *accumulate(queried)],
        milliseconds=[0.0, *read_clock(trace)],
    )


def read_clock(trace: Trace) -> list[float]:
    """Read the milliseconds since the start at the end of each step; never falling, zero where unknown."""
    return list(accumulate((round(1000.0 * step.get("seconds", 0.0), 2) for step in trace["steps"]), max))


def read_floats(values: Iterable[float | None]) -> Floats:
    """Read numbers, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def summarize(values: list[float | None], among: list[bool] | None) -> tuple[float | None, float | None, float | None]:
    """Return the least, mean and greatest finite value of the chosen positions (all if None), or three times None."""
    numbers = read_floats(values)
    numbers = numbers[np.isfinite(numbers) & (True if among is None else np.array(among, bool))]
    if not len(numbers):
        return None, None, None
    return round(float(numbers.min()), 3), round(float(numbers.mean()), 3), round(float(numbers.max()), 3)
